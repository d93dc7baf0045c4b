import Platform

/// One file or folder that a restore puts in its place; what is there is set aside.
///
/// It can be carried out any number of times, whatever moment an earlier attempt was interrupted at.
struct RestoreMove: Equatable {
  /// Where it was prepared, on the same file system as its place.
  let prepared: String
  let place: String
  /// The name for what is in its place.
  let aside: String
  /// Which file was prepared: the name gets another one when the two are exchanged.
  let identity: FileIdentity

  init(_ prepared: String, to place: String, aside: String) throws(BackupError) {
    guard let identity = FileIdentity(prepared) else { throw BackupError(prepared, "\(Errno.current)") }
    (self.prepared, self.place, self.aside, self.identity) = (prepared, place, aside, identity)
  }

  /// Whether it is still where it was prepared.
  var isPending: Bool { FileIdentity(prepared) == identity }

  /// Puts it in its place.
  ///
  /// - Returns: the path of what was set aside, now or by an earlier attempt; nil: nothing was in the place.
  /// - Throws: `BackupError`; then the next attempt goes on.
  func carryOut() throws(BackupError) -> String? {
    var path: String?
    if isPending { path = try putInPlace() }
    // The file that was in the place has the name now.
    if Files.hasName(prepared) { path = try setAside(prepared) }
    return path ?? (Files.hasName(aside) ? aside : nil)
  }

  /// In one step where the file system can exchange two names: so there is always a vault in the vault's place.
  ///
  /// - Returns: what was set aside already.
  private func putInPlace() throws(BackupError) -> String? {
    UserFolders.make(Files.folder(of: place))
    do throws(Errno) {
      do throws(Errno) { try Files.renameWithoutReplacing(prepared, to: place) } catch {
        guard error == .EEXIST else { throw error }
        try Files.exchange(prepared, with: place)
      }
      return nil
    } catch {
      guard [.EEXIST, .EINVAL, .ENOSYS, .EOPNOTSUPP].contains(error) else { throw failure(place, error) }
    }
    let path = Files.hasName(place) ? try setAside(place) : nil
    try moving(place) { () throws(Errno) in try Files.rename(prepared, to: place) }
    return path
  }

  private func setAside(_ path: String) throws(BackupError) -> String {
    UserFolders.make(Files.folder(of: aside))
    var name = aside
    // A second one comes up where a program made a file while an interrupted restore was waiting.
    for number in 2..<100 where Files.hasName(name) { name = "\(aside)-\(number)" }
    if let target = relativeTarget(of: path) { return try setAside(linkTo: target, at: path, name) }
    guard !Files.hasName(name) else { throw failure(path, .EEXIST) }
    try moving(path) { () throws(Errno) in try Files.rename(path, to: name) }
    return name
  }

  /// Where a symbolic link leads that would lead elsewhere from another folder; nil: it is none.
  private func relativeTarget(of path: String) -> String? {
    guard Files.folder(of: aside) != Files.folder(of: place), let target = (try? Files.target(ofLink: path)),
      !target.hasPrefix("/")
    else { return nil }
    return Files.folder(of: place) + "/" + target
  }

  private func setAside(
    linkTo target: String, at path: String, _ name: String
  ) throws(BackupError) -> String {
    // An earlier attempt was interrupted before it removed the link from its place.
    let name = (try? Files.target(ofLink: aside)) == target ? aside : name
    if name != aside || !Files.hasName(aside) {
      try moving(path) { () throws(Errno) in try Files.makeLink(name, to: target) }
    }
    try moving(path) { () throws(Errno) in _ = try Files.remove(path) }
    return name
  }

  private func moving(_ path: String, _ body: () throws(Errno) -> Void) throws(BackupError) {
    do { try body() } catch { throw failure(path, error) }
  }

  private func failure(_ path: String, _ error: Errno) -> BackupError {
    BackupError(path, "it can't be moved: \(error)")
  }
}

// MARK: - In the journal

extension RestoreMove {
  static let fieldCount = 6

  var fields: [String] {
    [prepared, place, aside, String(identity.number)] + identity.birth.map { String($0) }
  }

  /// nil: these are none.
  init?(_ fields: [String]) {
    guard fields.count == Self.fieldCount, let number = UInt64(fields[3]) else { return nil }
    let birth = fields[4...].compactMap { Int64($0) }
    guard birth.count == 2 else { return nil }
    (prepared, place, aside) = (fields[0], fields[1], fields[2])
    identity = FileIdentity(number: number, birth: birth)
  }
}
