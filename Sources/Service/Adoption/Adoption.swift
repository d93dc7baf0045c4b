import Control
import KeychainSelection
import Model
import Platform
import SecretMemory
import Store
import Tree
package import ViewFormats
import Views

/// One file whose values move into the keychain: a view, or an item, takes its place behind a symbolic link.
///
/// The order is such that the values are in two places until the person has confirmed: first they are stored and read back
/// through the mount byte for byte, then link and file exchange names in one step, and only then the file is overwritten.
package final class Adoption {
  private var file: PlainFile
  private let content: AdoptedContent
  private let place: PlainPlace
  private var entry: AdoptionJournal.Entry
  private let dialect: EnvDialect
  private let places: StoragePaths
  private let mount: String
  /// How many values the file has; nil: all of it is one.
  package let count: Int?

  /// For the person: what programs find and do where the link has the file's place.
  package var noteOfLink: String { place.noteOfLink }
  /// The path in the tree of the view, or of the item. `store` takes another one where this has been taken meanwhile.
  package var target: String { entry.target }
  /// The view or the item of an earlier adoption of the file, whose link was replaced by a file since; it stays as it is. nil: there is none.
  package let former: String?

  /// Whether a commit of git has the file, with the secrets that it had then.
  package var isInCommit: Bool { GitIndex.hasCommit(of: file.path) }
  /// Where the file is kept, after the link has its name, until it is overwritten.
  package var remains: String { file.path + AdoptionJournal.remainsEnding }

  /// Reads the file and looks for a place; nothing is changed. Where an earlier run was ended before the link had the file's name, its
  /// place is taken again.
  ///
  /// - Throws: `Failure` for a file that can't be adopted: `PlainFile`, tracked by git, not parsed; or nothing is mounted.
  package init(_ path: String, _ dialect: EnvDialect) throws {
    let path = try ViewLinks.absolute(path)
    places = try StoragePaths.ofMount()
    guard let mount = MountRegistration.all(in: places.runtime).last(where: \.isAlive) else {
      throw Failure(nil, "nothing is mounted, so the link would lead nowhere; `keyhole mount` mounts it")
    }
    guard !MountRegistration.all(in: places.runtime).contains(where: { path.hasPrefix($0.path + "/") }) else {
      throw Failure(path, "it is in the mount already; nothing was changed")
    }
    try ViewLinks.requireKeepable(path)
    self.mount = mount.path
    self.dialect = dialect
    try GitIndex.requireUntracked(path)
    file = try PlainFile(path)
    guard file.status.size > 0 else { throw Failure(path, "it is empty; nothing was changed") }
    let bytes = try file.content()
    content = AdoptedContent(try SecretBytes(copying: bytes))
    let known = PlainPlace(path)
    place = known.form == .view(.json) && !known.canParse(bytes) ? known.asItem : known
    count = try Self.count(content, place, dialect)
    let session = try TreeSession(for: TreePath("views"))
    try session.requireOpen(for: path, "so its values can't be stored; nothing was changed")
    let entries = try AdoptionJournal(in: places.state).entries
    let begun = Self.begun(path, entries)
    let earlier = entries.last { $0.file == path && [.adopted, .erasing].contains($0.stage) }
    former = try earlier.flatMap { try AdoptedTarget.path(of: $0, session) }
    entry = AdoptionJournal.Entry(file: path, target: "", link: "", permissions: file.status.permissions)
    take(try Self.target(place, content, for: path, entries, session))
    // The link of a run that was ended before link and file exchanged names.
    let isUnusedLink = begun != nil && (try? Files.target(ofLink: remains)) == begun?.link
    guard isUnusedLink || !Files.hasName(remains) else {
      throw Failure(
        remains, "this file of an earlier run is in the way; look at it, and move it away")
    }
  }

  private static func count(
    _ content: AdoptedContent, _ place: PlainPlace, _ dialect: EnvDialect
  ) throws -> Int? {
    guard case .view(let format) = place.form else { return nil }
    func count(_ dialect: EnvDialect) throws -> Int {
      try Self.count(content.copied(), format, dialect)
    }
    do { return try count(dialect) } catch let error as ViewError {
      let readers = format == .env ? EnvDialect.allCases.filter { (try? count($0)) != nil } : []
      let names = readers.map(\.rawValue).joined(separator: ", ")
      throw Failure(
        place.path, error.message + (names.isEmpty ? "" : "; with --dialect \(names) it can be read"))
    }
  }

  /// The number of values of a file; each can be taken out of it.
  private static func count(
    _ bytes: consuming SecretBytes, _ format: ViewFormat, _ dialect: EnvDialect
  ) throws(ViewError) -> Int {
    let document = try ViewDocument(parsing: bytes, as: format, dialect)
    // A value in a comment can't be protected: that is found now, not when half is stored.
    let places = Dictionary(document.entries.enumerated().map { ($1.name, $0) }) { first, _ in first }
    let template = try document.template { "keychain/generic/new/\(places[$0.name] ?? 0)" }
    let exposures = try template.exposures { (slot, body) throws(ViewError) in
      guard let place = places[slot.name] else { return }
      let value = try document.value(of: document.entries[place])
      try body(value.span)
    }
    if let exposure = exposures.first { throw exposure.error }
    return document.entries.count
  }

  /// The entry of a run that was ended before the link had the file's name.
  private static func begun(_ path: String, _ entries: [AdoptionJournal.Entry]) -> AdoptionJournal.Entry? {
    entries.last { $0.file == path && $0.stage == .making }
  }

  /// The place of a run that was ended, where nothing else has taken it, or one of a name that is free and that no other adoption has.
  private static func target(
    _ place: PlainPlace, _ content: AdoptedContent, for path: String, _ entries: [AdoptionJournal.Entry],
    _ session: TreeSession
  ) throws -> String {
    let taken = Set(entries.filter { $0.file != path }.map(\.target))
    if let begun = begun(path, entries), !taken.contains(begun.target) {
      let target = AdoptedTarget(path: begun.target)
      let isOwn =
        try begun.made.isEmpty
        ? target.isFree(session) || target.isMade(for: content, session)
        : AdoptedTarget.path(of: begun, session) == begun.target
      if isOwn { return begun.target }
    }
    for number in 1... {
      let name = number == 1 ? place.name : "\(place.name)-\(number)"
      let path = place.isItem ? "keychain/generic/\(name)/file" : "views/\(name)"
      if !taken.contains(path), try AdoptedTarget(path: path).isFree(session) { return path }
    }
    return ""
  }

  private func take(_ target: String) {
    entry = entry.moved(to: target, link: "\(mount)/\(target)\(place.isItem ? "/value" : "")")
  }

  private var made: AdoptedTarget { AdoptedTarget(path: target) }

  private var name: String { made.name }

  /// The file of the tree that the link leads to.
  private var linkTarget: String { entry.link }

  // MARK: Steps

  /// Stores the values, and gives the link the file's name.
  ///
  /// - Throws: `Failure`; then the file has its name, and what was stored is removed. Where that fails too, `keyhole doctor` names
  ///   it, and the next run takes it.
  package func store() throws {
    try file.protect()
    // It is held until the link has the file's name: so no other adoption takes the same place.
    var journal = try AdoptionJournal(in: places.state)
    take(
      try Self.target(
        place, content, for: file.path, journal.entries, TreeSession(for: TreePath("views"))))
    entry.made = Self.begun(file.path, journal.entries).flatMap { $0.target == target ? $0.made : nil } ?? [:]
    // Before anything is made: so a run that is killed is known.
    try journal.add(entry)
    do {
      try makeLink()
      try makeTarget(&journal)
      try requireSameContent(at: linkTarget)
      try exchange()
    } catch {
      if file.isNamed(file.path) { removeAll(&journal) }
      throw error
    }
    entry.stage = .adopted
    try journal.add(entry)
    if !place.isItem { try ViewLinks(name).link(file.path) }
  }

  /// Notes what was made, so that it is known after a run that is killed, and nothing else is removed in its place.
  private func noteMade(_ journal: inout AdoptionJournal) throws {
    entry.made = try made.made(TreeSession(for: TreePath("views")))
    try journal.add(entry)
  }

  private func removeAll(_ journal: inout AdoptionJournal) {
    if (try? Files.target(ofLink: remains)) != nil { _ = try? Files.remove(remains) }
    do {
      let session = try TreeSession(for: TreePath("views"))
      if !entry.made.isEmpty { try made.remove(session, made.made(session)) }
      try journal.remove(file.path)
    } catch {}
  }

  /// The link beside the file, with which it exchanges names at the end: so a file system without links is known before anything is
  /// stored.
  private func makeLink() throws {
    do throws(Errno) {
      if (try? Files.target(ofLink: remains)) != nil { _ = try Files.remove(remains) }
      try Files.makeLink(remains, to: linkTarget)
    } catch {
      let reason =
        [.EPERM, .ENOSYS, .EOPNOTSUPP].contains(error)
        ? "its file system has no symbolic links" : "no link can be made beside it: \(error)"
      throw Failure(file.path, reason + "; nothing was changed. `keyhole set` and `keyhole run` need no link")
    }
  }

  private func makeTarget(_ journal: inout AdoptionJournal) throws {
    guard case .view(let format) = place.form else {
      let value = TreePath(target).appending("value")
      let writing = try TreeSession(for: value)
      let isThere = try writing.existingNode(at: value) != nil
      try content.lend { try writing.write($0, to: value, replacing: isThere) }
      try noteMade(&journal)
      try writing.setAttribute("eol", to: "exact", ofItemAt: value)
      try content.lend { try writing.write($0, to: value) }
      return try noteMade(&journal)
    }
    let path = TreePath(target)
    let isThere = try TreeSession(for: path).existingNode(at: path) != nil
    // One of a run that was ended has its values already, or none.
    if !isThere {
      try ViewMaker().make(name, format, dialect, newPlace: "keychain/generic/\(name)", from: [])
    }
    try noteMade(&journal)
    // A session that sees the view.
    let writing = try TreeSession(for: path)
    try content.lend { try writing.write($0, to: path) }
    try noteMade(&journal)
  }

  /// How long the mount may take to show what this process has stored: it follows the vault's files by inotify(7).
  private static let patience = Duration.seconds(10)

  private func requireSameContent(at path: String) throws {
    let end = ContinuousClock.now + Self.patience
    while true {
      do throws(Errno) {
        if content.isEqual(to: try Self.read(path)) { return }
        guard .now < end else { break }
      } catch {
        // The file, or its size, is still the one from before.
        guard [.ENOENT, .EBUSY].contains(error), .now < end else {
          let remedy = error == .ENOKEY ? "; `keyhole unlock`, and then the same command again" : ""
          throw Failure(
            file.path,
            "its values can't be read back from \(target) (\(error)); the file is as it was\(remedy)")
        }
      }
      Pause.microseconds(5000)
    }
    throw Failure(file.path, "its values read back differently from \(target); the file is as it was")
  }

  static func read(_ path: String) throws(Errno) -> SecretBytes {
    let file = try Descriptor(path, [.reading])
    let size = try file.status.size
    guard size > 0 else { throw .EBUSY }
    guard size <= FileTree.secretLimit, var bytes = try? SecretBytes(pinnable: Int(clamping: size)) else {
      throw .EFBIG
    }
    var span = bytes.mutableSpan
    guard try file.fill(&span, at: 0) == size else { throw .EBUSY }
    // The store is on the disk before the file is not.
    try file.synchronize()
    return bytes
  }

  private func exchange() throws {
    let folder = Files.folder(of: file.path)
    do throws(Errno) {
      try Files.exchange(remains, with: file.path)
      try Files.synchronizeFolder(folder)
    } catch {
      let reason =
        error == .EINVAL
        ? "its file system can't exchange names (renameat2(2))"
        : "the link can't be put in its place: \(error)"
      throw Failure(file.path, reason + "; the file is as it was")
    }
    do {
      guard file.isNamed(remains), file.isUnchanged else {
        throw Failure(
          file.path, "another program opened or changed it meanwhile; the file is as that left it, try again")
      }
      try requireSameContent(at: file.path)
    } catch {
      try? Files.exchange(remains, with: file.path)
      _ = try? Files.remove(remains)
      try? Files.synchronizeFolder(folder)
      throw error
    }
  }

  /// Overwrites the file that has lost its name, and removes it.
  ///
  /// - Throws: `Failure`; the file is then still there.
  package func erase() throws {
    guard file.isNamed(remains), file.isUnchanged else {
      throw Failure(
        remains, "another program opened or changed it meanwhile; it is still there, with the secrets in it")
    }
    try AdoptionRest.erase(file, remains, entry, places)
  }
}

extension TreeSession {
  /// Has a person unlock a locked keychain before anything is made.
  ///
  /// `consequence`: of the lock, for the file. - Throws: `Failure` that names the file.
  func requireOpen(for file: String, _ consequence: String) throws {
    let anyItem = TreePath("keychain/generic/adopted/file/value")
    do { try unlock(toStoreAt: anyItem) } catch let failure as Failure {
      guard failure.kind == .locked else { throw failure }
      throw Failure(
        file, "the keychain is locked, \(consequence). `keyhole unlock`, and then the same command again",
        .locked)
    }
  }
}

extension PlainPlace {
  fileprivate var isItem: Bool { form == .item }
}

/// The content of a file, lent to closures.
final class AdoptedContent: Sendable {
  private let bytes: SecretBytes

  init(_ bytes: consuming SecretBytes) { self.bytes = bytes }

  func copied() throws -> SecretBytes { try SecretBytes(copying: bytes) }

  func lend(_ body: (Span<UInt8>) throws -> Void) throws { try bytes.withSpan(0..<bytes.count, body) }

  func isEqual(to other: borrowing SecretBytes) -> Bool { bytes == other }

  /// `exceptLineFeed`: the other one may have one less at its end.
  func isEqual(to other: borrowing SecretBytes, exceptLineFeed: Bool) -> Bool {
    if bytes == other { return true }
    let count = other.count
    guard exceptLineFeed, bytes.count == count &+ 1 else { return false }
    return bytes.withSpan(0..<count &+ 1) { mine in
      mine[count] == 0x0A && mine.extracting(0..<count).hasSameBytes(as: other.span)
    }
  }
}
