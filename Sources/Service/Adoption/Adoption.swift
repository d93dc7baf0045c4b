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
  private let content: Held
  private let place: PlainPlace
  private let dialect: EnvDialect
  private let session: TreeSession
  private let places: StoragePaths
  private let mount: String
  /// The path in the tree of the view, or of the item.
  package let target: String
  /// How many values the file has; nil: all of it is one.
  package let count: Int?

  /// Where the file is kept, after the link has its name, until it is overwritten.
  package var remains: String { file.path + AdoptionJournal.remainsEnding }

  /// Reads the file and looks for a place; nothing is changed.
  ///
  /// - Throws: `Failure` for a file that can't be adopted: `PlainFile`, tracked by git, not parsed; or nothing is mounted.
  package init(_ path: String, _ dialect: EnvDialect) throws {
    let path = try ViewLinks.absolute(path)
    places = try StoragePaths.ofMount()
    guard let mount = MountRegistration.all(in: places.runtime).last(where: \.isAlive) else {
      throw Failure(nil, "nothing is mounted, so the link would lead nowhere; `keyhole mount` mounts it")
    }
    self.mount = mount.path
    self.dialect = dialect
    try GitIndex.requireUntracked(path)
    file = try PlainFile(path)
    place = PlainPlace(path)
    guard file.status.size > 0 else { throw Failure(path, "it is empty; nothing was changed") }
    let bytes = try file.content()
    content = Held(try SecretBytes(copying: bytes))
    count = try Self.count(bytes, place, dialect)
    session = try TreeSession(for: TreePath("views"))
    target = try Self.freeTarget(place, session)
    guard try !Files.hasName(remains) || isUnusedLink(remains) else {
      throw Failure(
        remains, "this file of an earlier run is in the way; look at it, and move it away")
    }
  }

  /// Whether it is the link of a run that was ended before link and file exchanged names.
  private func isUnusedLink(_ remains: String) throws -> Bool {
    guard let link = try? Files.target(ofLink: remains) else { return false }
    return try AdoptionJournal(in: places.state).entries.contains { $0.file == file.path && $0.link == link }
  }

  private static func count(
    _ bytes: consuming SecretBytes, _ place: PlainPlace, _ dialect: EnvDialect
  ) throws -> Int? {
    guard case .view(let format) = place.form else { return nil }
    do throws(ViewError) {
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
    } catch {
      throw Failure(place.path, "\(error.message)\(format == .env ? "; --dialect names another reader" : "")")
    }
  }

  /// A name that neither a view nor a service has, so that no item is replaced.
  private static func freeTarget(_ place: PlainPlace, _ session: TreeSession) throws -> String {
    for number in 1... {
      let name = number == 1 ? place.name : "\(place.name)-\(number)"
      let service = "keychain/generic/\(name)"
      guard try session.existingNode(at: TreePath(service)) == nil else { continue }
      guard case .view = place.form else { return service + "/file" }
      if try session.existingNode(at: TreePath("views/\(name)")) == nil { return "views/\(name)" }
    }
    return ""
  }

  private var name: String { Files.name(of: place.isItem ? Files.folder(of: target) : target) }

  /// The file of the tree that the link leads to.
  private var linkTarget: String { "\(mount)/\(place.isItem ? target + "/value" : target)" }

  // MARK: Steps

  /// Stores the values, and gives the link the file's name.
  ///
  /// - Throws: `Failure`; then the file has its name, and what was stored is named.
  package func store() throws {
    try file.protect()
    var journal = try AdoptionJournal(in: places.state)
    try makeTarget()
    do {
      try requireSameContent(at: linkTarget)
      try journal.add(
        AdoptionJournal.Entry(
          file: file.path, target: target, link: linkTarget, permissions: file.status.permissions))
      try exchange()
    } catch {
      try? journal.remove(file.path)
      throw error
    }
    if !place.isItem { try ViewLinks(name).link(file.path) }
  }

  private func makeTarget() throws {
    guard case .view(let format) = place.form else {
      let value = TreePath(target).appending("value")
      let writing = try TreeSession(for: value)
      try content.lend { try writing.write($0, to: value) }
      try writing.setAttribute("eol", to: "exact", ofItemAt: value)
      return try content.lend { try writing.write($0, to: value) }
    }
    try ViewMaker().make(name, format, dialect, newPlace: "keychain/generic/\(name)", from: [])
    // A session that sees the view.
    let writing = try TreeSession(for: TreePath(target))
    do {
      try content.lend { try writing.write($0, to: TreePath(target)) }
    } catch {
      try? writing.attempt(TreePath(target)) { () throws(StoreError) in
        guard let views = writing.tree.views else { return }
        try views.remove(views.existing(ExactString(name)))
      }
      throw error
    }
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
          throw Failure(
            file.path, "its values are in \(target), and can't be read back (\(error)); the file is as it was"
          )
        }
      }
      Pause.microseconds(5000)
    }
    throw Failure(
      file.path, "its values are in \(target), and read back differently; the file is as it was")
  }

  private static func read(_ path: String) throws(Errno) -> SecretBytes {
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
      // Of an earlier run; a file there was refused.
      if (try? Files.target(ofLink: remains)) != nil { _ = try Files.remove(remains) }
      try Files.makeLink(remains, to: linkTarget)
      do throws(Errno) {
        try Files.exchange(remains, with: file.path)
      } catch {
        _ = try? Files.remove(remains)
        throw error
      }
      try Files.synchronizeFolder(folder)
    } catch {
      throw Failure(
        file.path,
        "the link can't be put in its place (\(error)); the file is as it was, its values are in \(target) too"
      )
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
    do throws(Errno) {
      try file.overwrite()
      try Files.remove(remains)
      try Files.synchronizeFolder(Files.folder(of: remains))
    } catch {
      throw Failure(remains, "it can't be overwritten and removed: \(error)")
    }
  }
}

extension PlainPlace {
  fileprivate var isItem: Bool { form == .item }
}

/// The content of a file, lent to closures.
private final class Held: Sendable {
  private let bytes: SecretBytes

  init(_ bytes: consuming SecretBytes) { self.bytes = bytes }

  func lend(_ body: (Span<UInt8>) throws -> Void) throws { try bytes.withSpan(0..<bytes.count, body) }

  func isEqual(to other: borrowing SecretBytes) -> Bool { bytes == other }
}
