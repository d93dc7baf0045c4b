package import KeychainSelection
package import Model
import Platform
import Prompting
package import SecretMemory
package import Store
package import Tree
import Vault

/// The tree for one command, without a mount.
package struct TreeSession {
  package let tree: FileTree
  package let root: Node
  package let stores: Stores
  package let caller = Caller.current
  /// nil: nothing is said of the keychain.
  private let notice: TrustNotice?
  /// Whether a person is asked for the passphrase where the keychain is locked.
  private let asksToUnlock: Bool
  /// The one key of its suite that is sure to be there if it exists; nil: all are.
  private(set) var onlyKey: SettingKey?
  /// The mount whose settings these are; nil: those that commands use.
  package private(set) var settingsMount: String?

  /// `mount`: the one whose settings are meant; nil: those that commands use.
  package init(
    for path: TreePath, _ settings: OpenedPath.Settings = .all, settingsOf mount: String? = nil
  ) throws {
    let places = try StoragePaths.ofMount().with(settingsOf: mount)
    let onlyKey = settings == .one ? path.settingKey : nil
    let stores = try Stores(for: path, places, unlocking: .ofCommand(places), onlyKey: onlyKey)
    self.init(stores, sayingTrustIn: places)
    self.onlyKey = onlyKey
    settingsMount = mount
  }

  /// For the names at the top, which are there whatever the keychain does: `report` gets why it can't be opened.
  ///
  /// `keychain`: the one to open; nil: that of the mount, else `auto`.
  package init(
    atTopOf path: TreePath, _ keychain: KeychainChoice? = nil, report: (Failure) -> Void
  ) throws {
    let places = try StoragePaths.ofMount()
    do {
      try self.init(
        Stores(for: path, places, keychain, unlocking: .ofCommand(places)), sayingTrustIn: places)
    } catch let failure as Failure {
      report(failure)
      self.init(try Stores(withoutItemsIn: places), sayingTrustIn: nil)
    }
  }

  /// For what a person does not read, as completions.
  package init(
    silentlyFor path: TreePath, _ keychain: KeychainChoice? = nil, settingsOf mount: String? = nil
  ) throws {
    let places = try StoragePaths.ofMount().with(settingsOf: mount)
    self.init(try Stores(for: path, places, keychain), sayingTrustIn: nil, askingToUnlock: false)
    settingsMount = mount
  }

  /// The tree of a keychain that this process opens by itself, whatever a mount has unlocked.
  package init(aloneIn places: StoragePaths) throws {
    self.init(try Stores(aloneIn: places), sayingTrustIn: places)
  }

  init(_ stores: Stores, sayingTrustIn places: StoragePaths?, askingToUnlock asks: Bool = true) {
    self.stores = stores
    asksToUnlock = asks && UnlockController.isWantedByEnvironment
    notice = places.map { TrustNotice(stores.keychain?.engine, $0) }
    var options = FileTree.Options()
    options.enrolledFingers = EnrolledSet.digest
    options.factors = ApprovalFactors.ofMachine
    options.stateFolder = stores.folders.state
    options.isWithoutVault = stores.keychain == nil && Files.hasName(stores.folders.vault + "/vault.db")
    tree = FileTree(settings: stores.settings, keychain: stores.keychain, options: options)
    root = tree.root
  }

  /// Whether the session has a keychain, which is opened for the paths that need it.
  package var hasKeychain: Bool { stores.keychain != nil }

  /// Ends the process after a command that has only read. To give back what the tree has in memory would take as long as many
  /// such commands; keys are wiped, and the vault is closed.
  ///
  /// Returns where the keychain needs more than that.
  package func endProcess() {
    if closeVault() { CurrentProcess.exit(0) }
  }

  /// Wipes the keys of a vault that this process has opened, and closes it. Nothing more can be read then.
  ///
  /// - Returns: false: the keychain is another one.
  @discardableResult
  package func closeVault() -> Bool {
    switch stores.keychain?.engine {
    case nil: break
    case let vault as VaultEngine: vault.close()
    default: return false
    }
    return true
  }

  /// - Throws: `Failure` that names the path.
  package func node(at path: TreePath) throws -> Node {
    do {
      return try attempt(path) { () throws(StoreError) in try find(path.components[...]) }
    } catch let failure as Failure {
      throw spelled(failure, path)
    }
  }

  /// nil: there is none.
  package func existingNode(at path: TreePath) throws -> Node? {
    let node: Node? = try attempt(path) { () throws(StoreError) in
      do throws(StoreError) { return try find(path.components[...]) } catch {
        guard error == .notFound else { throw error }
        return nil
      }
    }
    if node == nil, let failure = damage(path) { throw failure }
    return node
  }

  /// A suite whose file can't be read has no key: then the file is what a message has to name.
  private func damage(_ path: TreePath) -> Failure? {
    guard path.components.first == "defaults", path.components.count > 1,
      let name = (try? PathName(lookingUp: path.components[1].utf8))?.plain,
      (try? find(path.components[..<2])) == nil,
      let problem = tree.settings.engine.problems().first(where: {
        $0.subject.hasSuffix("/\(name.string).plist")
      })
    else { return nil }
    return Failure(problem.subject, "\(problem.reason); \(problem.remedy)")
  }

  func find(_ components: ArraySlice<String>) throws(StoreError) -> Node {
    try tree.node(at: Array(components))
  }

  /// The folder of a path, made with all that leads to it where it is missing.
  func madeFolder(of path: TreePath) throws -> Node {
    try attempt(path) { () throws(StoreError) in
      try tree.makeDirectories(at: path.components.dropLast())
    }
  }

  /// The folder of a service or a server, in which nothing has to be yet: rules for it are kept all the same. nil: the path leads elsewhere.
  package func ruleFolder(at path: TreePath) throws -> Node? {
    guard path.components.count == 3, ["generic", "internet"].contains(path.components[1]), !path.isItem
    else {
      return nil
    }
    return try madeFolder(of: path.appending("value"))
  }

  /// Refuses to write a file that no store would keep: a scratch file lives as long as the process that made it, which
  /// here is one command.
  ///
  /// - Throws: `Failure` with the name that is stored.
  package func requireStored(_ path: TreePath) throws {
    if path.isOtpauth { try requireItem(path.parent) }
    guard let stored = path.storedName else { return }
    // A key of such a name that is in the suite already is an ordinary key.
    guard try existingNode(at: path) == nil else { return }
    throw Failure(
      path.string,
      "this name is for temporary files of editors, which are not stored; nothing was set. \(stored)")
  }

  /// An `otpauth:` URI waits for its item's secret in memory, as long as the process lives.
  private func requireItem(_ path: TreePath) throws {
    guard path.components.count > 2, try existingNode(at: path.appending("value")) == nil else { return }
    let name = path.appending("value").string.quotedForShell
    let near = items(beginningWith: path).map(\.string)
    let hint = Spelling.question(near).map { "; or \($0)" } ?? ""
    throw Failure(path.string, "there is no such item yet; `keyhole set \(name)` makes it\(hint)", .notFound)
  }

  /// The accounts of a server that have further parts behind this one, such as `;protocol=https`: three at most.
  private func items(beginningWith path: TreePath) -> [TreePath] {
    let folder = path.parent
    guard let node = try? existingNode(at: folder), let entries = try? tree.list(node) else { return [] }
    let names = entries.map(\.name).filter { $0.hasPrefix(path.name + ";") }
    return names.sorted().prefix(3).map(folder.appending)
  }

  /// Runs `body` with the file open for reading.
  package func read(_ path: TreePath, _ body: (Span<UInt8>) -> Void) throws {
    let node = try node(at: path)
    try attempt(path) { () throws(StoreError) in
      let permit = try tree.permission(toOpen: node, .read, by: caller)?.fetch()
      let handle = try tree.open(node, .read, by: caller, permit)
      defer { handle.close() }
      try handle.read(at: 0, count: .max) { body($0) }
    }
  }

  /// A copy of the content of a file. - Throws: `Failure` where it can't be read.
  package func secret(at path: TreePath) throws -> SecretBytes {
    var copy = try SecretBytes()
    var failure: SecretMemoryError?
    try read(path) { bytes in
      do throws(SecretMemoryError) { try copy.append(bytes) } catch { failure = error }
    }
    if let failure { throw failure }
    return copy
  }

  /// Replaces the file's content, or makes it.
  ///
  /// `replacing`: false: a file that is there, or that a mount has attributes for, is a `Failure`.
  package func write(_ bytes: Span<UInt8>, to path: TreePath, replacing: Bool = true) throws {
    if let staged = StagedMountItem(ofValueAt: path, in: self) {
      guard replacing else { throw Failure(path.string, StoreError.exists) }
      try attempt(path) { () throws(StoreError) in try staged.write(bytes) }
      return stores.settleKeychain()
    }
    var tries = replacing ? Self.tries : 1
    try attempt(path) { () throws(StoreError) in
      while true {
        tries -= 1
        do throws(StoreError) { return try store(bytes, at: path, replacing: replacing) } catch {
          // Another process has made or removed it in this moment.
          guard tries > 0, error == .exists || error == .notFound else { throw error }
          try? stores.keychain?.refresh()
        }
      }
    }
    if path.isSecret { stores.settleKeychain() }
  }

  private static let tries = 10

  private func store(_ bytes: Span<UInt8>, at path: TreePath, replacing: Bool) throws(StoreError) {
    let folder = try tree.makeDirectories(at: path.components.dropLast())
    let permit = try tree.permission(toCreate: path.name.utf8, in: folder, .write, by: caller)?.fetch()
    let handle = try tree.create(
      path.name.utf8, in: folder, [.write, .truncate], exclusive: !replacing, by: caller, permit)
    defer { handle.close() }
    try handle.write(bytes, at: 0, by: caller)
    try handle.flush(by: caller)
  }

  /// Sets an attribute of Keyhole's of the item of a path, which need not be there yet.
  ///
  /// - Throws: `Failure`, also where a mount has attributes that wait for the item's secret.
  package func setAttribute(_ name: String, to text: String, ofItemAt path: TreePath) throws {
    if let staged = StagedMountItem(ofValueAt: path.ofValue, in: self) {
      throw staged.refusal(of: "user.keyhole." + name, text)
    }
    let item = try madeFolder(of: path)
    try attempt(path) { () throws(StoreError) in
      let (name, value) = ("user.keyhole." + name, Array(text.utf8))
      let permit = try tree.permission(toSet: name, to: value, of: item, by: caller)?.fetch()
      try tree.setAttribute(name, to: value, of: item, if: .always, by: caller, permit)
    }
  }

  /// - Throws: `Failure` for a keychain that was put back, cut or edited: what it gives is not all that was stored.
  package func requireTrust() throws { try notice?.require() }

  package func attempt<Value: ~Copyable>(
    _ path: TreePath, _ body: () throws(StoreError) -> Value
  ) throws -> Value {
    // A vault beside another keychain is looked at when an item needs it.
    defer { notice?.write() }
    do throws(StoreError) {
      guard let keychain = stores.keychain, path.needsKeychain, asksToUnlock else { return try body() }
      return try keychain.unlockingOnDemand(for: path.string, by: caller, body)
    } catch {
      var failure = damage(path) ?? Failure(path.string, error)
      // A value that protects less than the default takes a person.
      if case .notPermitted = error, path.isOfConfiguration { failure.kind = .refused }
      throw failure
    }
  }

  /// The stores of a command that stores items: a person is asked for the passphrase where the keychain is locked.
  package static func unlockedStores(for path: TreePath, _ places: StoragePaths) throws -> Stores {
    let stores = try Stores(for: path, places, unlocking: .ofCommand(places))
    if path.needsKeychain { TreeSession(stores, sayingTrustIn: nil).askToUnlock() }
    return stores
  }

  /// Asks a person for the passphrase where the keychain is locked. Where it stays locked, the next use of it throws.
  package func askToUnlock() {
    try? unlock(toStoreAt: TreePath("keychain/generic/service/account/value"))
  }

  /// Has a person unlock the keychain where a secret is to be stored and it is locked: before they type the secret.
  package func unlock(toStoreAt path: TreePath) throws {
    guard let keychain = stores.keychain, path.isSecret, !keychain.engine.locking.isOpenThroughout else {
      return
    }
    try attempt(path) { () throws(StoreError) in
      guard keychain.engine.locking.lockState == .open else { throw .locked }
    }
  }
}
