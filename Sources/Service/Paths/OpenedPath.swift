import Control
import KeychainSelection
import Model
import Platform
import Store
import Tree

/// The path that a word of the command line stands for, with the session that it was looked up in.
///
/// A word is a path from the top of the tree, or a path in a mount, absolute or relative to the current directory; else it is
/// tried as a short name, `SERVICE/ACCOUNT`, or `SERVICE` where that has one account.
package struct OpenedPath {
  package let session: TreeSession
  package let path: TreePath

  /// The short names that a command takes.
  package enum ShortNames: Sendable {
    /// None: the command creates or removes.
    case none
    /// Those of items that are there.
    case items
    /// The same; a path of a new key, relative to a folder in a mount, is that key.
    case itemsUnlessKey
    /// Those of items, and of services and servers with all their items.
    case folders
  }

  /// The settings that a command uses.
  package enum Settings: Sendable {
    /// Those of a path, and others.
    case all
    /// The one that the path names: others of its suite may be missing, except in messages.
    case one
  }

  /// - Throws: `Failure` for a word that stands for nothing, or that is the short name of several items.
  ///
  /// `present`: a session of the command from before, whose keychain may be unlocked already.
  package init(
    _ text: String, _ shortNames: ShortNames, _ settings: Settings = .all, in present: TreeSession? = nil
  ) throws {
    guard !PathLocation.isFull(text) else {
      path = TreePath(text)
      session = try Self.session(for: path, settings, present)
      return
    }
    let places = try StoragePaths.ofMount()
    switch PathLocation(text, .current(places)) {
    case .tree(let path, let mount):
      if path.needsKeychain, let mount { try Self.requireSameKeychain(mount, path, places) }
      self.path = path
      session = try Self.session(for: path, settings, present, in: mount)
    case .relative(let path, let mount):
      if path.needsKeychain { try Self.requireSameKeychain(mount, path, places) }
      let opened = try Self.session(for: path, settings, present, in: mount)
      let isKey = shortNames == .itemsUnlessKey && path.isKey
      if shortNames != .none, !isKey, (try? opened.existingNode(at: path)) == nil,
        let short = try Self.short(text, shortNames, present, mayFail: true)
      {
        self = short
      } else {
        self.path = path
        session = opened
      }
    case .outside:
      if let failure = Self.plainFile(text) { throw failure }
      throw Failure(
        text, "it lies below no mount; paths of the tree begin with `defaults/` or `keychain/`", .notFound)
    case .short:
      guard shortNames != .none, let short = try Self.short(text, shortNames, present, mayFail: false) else {
        throw try Self.unknown(text, shortNames)
      }
      self = short
    }
  }

  /// - Throws: `Failure` where the two are settings of mounts that may show other ones: nothing moves between these.
  package func requireSameSettings(as other: OpenedPath) throws {
    guard !path.needsKeychain, !other.path.needsKeychain, session.settingsMount != other.session.settingsMount
    else { return }
    throw Failure(
      other.path.string,
      "the two paths are in mounts that may show other settings; give both in one mount, or copy the files with cp(1)"
    )
  }

  /// A word of which nothing is looked up: only a path that is full or lies in a mount.
  ///
  /// - Throws: `Failure` for any other word.
  package static func path(_ text: String) throws -> TreePath {
    guard !PathLocation.isFull(text) else { return TreePath(text) }
    switch PathLocation(text, .current(try StoragePaths.ofMount())) {
    case .tree(let path, _), .relative(let path, _): return path
    case .outside, .short:
      throw Failure(
        text, "it is no path of the tree; these begin with `defaults/` or `keychain/`", .notFound)
    }
  }

  /// The path that a word is by its text, the mounts and the current directory alone; nil: it may be a short name.
  package static func position(_ text: String) throws -> TreePath? {
    guard !PathLocation.isFull(text) else { return TreePath(text) }
    guard case .tree(let path, _) = PathLocation(text, .current(try StoragePaths.ofMount())) else {
      return nil
    }
    return path
  }

  private init(session: TreeSession, path: TreePath) {
    self.session = session
    self.path = path
  }
}

extension OpenedPath {
  /// A session without the keychain does not do for an item.
  private static func session(
    for path: TreePath, _ settings: Settings, _ present: TreeSession?, in mount: String? = nil
  ) throws -> TreeSession {
    if let mount = try otherSettings(than: mount, for: path) {
      return try TreeSession(for: path, settings, settingsOf: mount)
    }
    if let present, present.hasKeychain { return present }
    return try TreeSession(for: path, settings)
  }

  /// The mount whose settings and keychain commands use, where others that show other keychains run too; nil: there are none.
  package static func mountOfCommands() -> String? {
    guard let folders = UserFolders.current() else { return nil }
    let mounts = MountRegistration.all(in: folders.runtime).filter(\.isAlive)
    guard let present = mounts.last,
      mounts.contains(where: {
        $0.keychain.choice != present.keychain.choice || $0.keychain.vault != present.keychain.vault
      })
    else { return nil }
    return present.path
  }

  /// The mount, where a path of settings in it may mean other ones than those that commands use, which are those of the newest mount: the settings of
  /// a cluster's store are made of the layers of the mount's own options.
  private static func otherSettings(than mount: String?, for path: TreePath) throws -> String? {
    guard let mount, path.components.first == "defaults" else { return nil }
    let runtime = try StoragePaths.ofMount().runtime
    guard let present = MountRegistration.ofSettings(in: runtime), present.path != mount,
      let named = MountRegistration.named(mount, in: runtime)
    else { return nil }
    return named.hasRemoteSettings || present.hasRemoteSettings ? mount : nil
  }

  /// Commands open the keychain of the newest mount.
  private static func requireSameKeychain(
    _ mount: String, _ path: TreePath, _ places: StoragePaths
  ) throws {
    let mounts = MountRegistration.all(in: places.runtime).filter(\.isAlive)
    guard let present = mounts.last, let named = mounts.last(where: { $0.path == mount }),
      named.keychain.choice != present.keychain.choice || named.keychain.vault != present.keychain.vault
    else { return }
    throw Failure(
      mount,
      "this mount shows another keychain than \(present.path), which commands use; read \(path.string) there as a file"
    )
  }

  /// The files of an item that may stand behind its short name.
  private static let files: Set<String> = ["value", ItemSecrets.otpauthName, "otp"]

  /// nil: nothing has this short name.
  private static func short(
    _ text: String, _ shortNames: ShortNames, _ present: TreeSession?, mayFail: Bool
  ) throws -> OpenedPath? {
    let names = text.unicodeScalars.split(separator: "/").map { String($0) }
    let file = names.count == 3 ? names.last.flatMap { files.contains($0) ? $0 : nil } : nil
    guard (1...2).contains(names.count) || file != nil, !names.contains("..") else { return nil }
    let session: TreeSession
    var found: [TreePath]
    do {
      session = try Self.session(for: TreePath("keychain"), .all, present)
      found = try session.items(named: Array(names.prefix(2)))
      if let file {
        let files = found.map { $0.appending(file) }
        found = try files.filter { try session.existingNode(at: $0) != nil }
        // The one item has no code, which is the command's error then.
        if found.isEmpty, files.count == 1, file == ItemSecrets.codeName { found = files }
      }
      if shortNames == .folders, names.count == 1, !found.isEmpty {
        found = try session.folders(named: names[0])
      }
    } catch {
      // The word is a path below the current directory too, and that file is missing.
      guard mayFail else { throw error }
      return nil
    }
    guard let path = found.first else { return nil }
    guard found.count == 1 else { throw Failure(text, ambiguity(found)) }
    return OpenedPath(session: session, path: path)
  }

  private static func ambiguity(_ paths: [TreePath]) -> String {
    let shown = paths.prefix(6).map(\.string).joined(separator: ", ")
    let more = paths.count > 6 ? " and \(paths.count - 6) more" : ""
    return "it is the short name of several: \(shown)\(more); give one of these paths"
  }

  /// For an ordinary file, which a person may take for a link to a view or an item: something has put it in the link's place.
  private static func plainFile(_ text: String) -> Failure? {
    guard (try? Files.status(text, followingLinks: false))?.isRegular == true else { return nil }
    let file = text.quotedForShell
    return Failure(
      text,
      "it is a file on the disk, and no link into the mount; `keyhole view --take-in \(file)` takes it over where it has replaced a link to a view, "
        + "and `keyhole adopt \(file)` moves it into the keychain", .notFound)
  }

  private static func unknown(_ text: String, _ shortNames: ShortNames) throws -> Failure {
    if shortNames != .itemsUnlessKey, let failure = plainFile(text) { return failure }
    let names = text.unicodeScalars.split(separator: "/").map { String($0) }
    if shortNames == .none, let short = try? Self.short(text, .folders, nil, mayFail: true) {
      return Failure(
        text, "a short name only reads and edits; give the full path, \(short.path.string)", .notFound)
    }
    let places = ["defaults", "keychain/generic", "keychain/internet"]
    let sessions = try [TreeSession(for: TreePath("defaults")), TreeSession(for: TreePath("keychain"))]
    var near = places.compactMap { place in
      let path = TreePath(components: TreePath(place).components + names)
      return (path.needsKeychain ? sessions[1] : sessions[0]).likelyPath(path, wholly: true)?.string
    }
    // The first name may be a misspelt one of the tree. One name alone of a longer path says too little.
    let full = sessions[1].likelyPath(TreePath(components: names))
    if let full, names.count == 1 || full.components.count > 1 { near.append(full.string) }
    if shortNames == .itemsUnlessKey, names.count == 2 {
      let path = TreePath(components: ["keychain", "generic"] + names)
      // Another secret is not offered to be replaced, unless one character is wrong.
      let wanted = Array(names.joined(separator: "/").lowercased())
      let nearest = near.filter {
        let name = TreePath($0).components.dropFirst(2).joined(separator: "/")
        return Spelling.distance(wanted, Array(name.lowercased())) <= 1
      }
      let hint = Spelling.question(nearest).map { "; or \($0)" } ?? ""
      return Failure(
        text, "no item has this short name, and a new one is made by its full path: \(path.string)\(hint)",
        .notFound)
    }
    if let hint = Spelling.question(near) {
      return Failure(text, "there is no such file; \(hint)", .notFound)
    }
    let reason =
      shortNames == .none
      ? "it is no path of the tree; these begin with `defaults/` or `keychain/`, as in keychain/generic/SERVICE/ACCOUNT"
      : "there is no such file, and no item has this short name; `keyhole ls` shows what is there"
    let others = mountOfCommands().map { ". Commands use \($0), which was mounted last" } ?? ""
    return Failure(text, reason + others, .notFound)
  }
}

extension TreeSession {
  /// The items that a short name fits: a service or server, and an account.
  func items(named names: [String]) throws -> [TreePath] {
    var found: [TreePath] = []
    for folder in try folders(named: names[0]) {
      if folder.isItem {
        if names.count == 1 { found.append(folder) }
        continue
      }
      let node = try node(at: folder)
      let entries = try attempt(folder) { () throws(StoreError) in try tree.list(node) }
      let accounts = entries.map(\.name).filter { names.count == 1 || Self.isAccount(names[1], $0) }
      found += accounts.sorted { ExactString($0) < ExactString($1) }.map(folder.appending)
    }
    return found
  }

  /// The folders of a service, of a server, and of an item of the class `other`.
  func folders(named name: String) throws -> [TreePath] {
    try ["keychain/generic", "keychain/internet", "keychain/other"].map { TreePath($0).appending(name) }
      .filter { try existingNode(at: $0) != nil }
  }

  /// An account of a server may have parts behind it (SPECIFICATION.md, section 2); one in the name itself is escaped.
  private static func isAccount(_ account: String, _ leaf: String) -> Bool {
    ExactString(leaf) == ExactString(account)
      || leaf.utf8.starts(with: account.utf8)
        && leaf.utf8.dropFirst(account.utf8.count).first == UInt8(ascii: ";")
  }
}
