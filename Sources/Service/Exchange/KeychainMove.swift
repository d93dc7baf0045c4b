import Cluster
import ClusterRecords
import Control
package import KeychainSelection
package import Model
import PromptHelper
import Prompting
package import SecretMemory
import SecretServiceProtocol
import Store
import Tree

/// The two keychains of a move, opened, and the move of all items from one to the other.
package struct KeychainMove {
  /// How the keychains are opened.
  package struct Options {
    /// A Secret Service also without encryption on the bus, whatever the vault says.
    package var allowsPlainSession = false
    /// The vault seals the items before a Secret Service gets them.
    package var seals = false
    /// Gives the vault's passphrase. A Secret Service asks for its own by itself.
    package var passphrase: () throws -> SecretBytes

    package init(passphrase: @escaping () throws -> SecretBytes) {
      self.passphrase = passphrase
    }
  }

  package let migration: KeychainMigration
  private let target: KeychainChoice
  private let places: StoragePaths

  /// - Throws: `Failure` where a keychain can't be opened, or the first one was put back, cut or edited.
  package init(
    from source: KeychainChoice, to target: KeychainChoice, _ places: StoragePaths, _ options: Options
  ) throws {
    let opener = KeychainOpener(places, options)
    let engine = try opener.open(source)
    try TrustNotice(engine, places).require()
    let asking = Self.asking(engine, places)
    var refusal: ((Item) -> StoreError?)?
    if source == .cluster || target == .cluster { refusal = { Self.refusal($0) } }
    try Self.requireOpenCollections(engine, source)
    migration = KeychainMigration(
      from: engine, to: try opener.open(target), sealing: options.seals,
      sharing: refusal, collection: try Self.collection(of: engine, target), path: Self.path
    ) { item throws(StoreError) in
      let path = Self.path(item.identity)
      return try asking.permission(for: item, to: .read, item.secrets, path: path, by: .current).fetch()
    }
    (self.target, self.places) = (target, places)
  }

  /// Items of a locked collection would stay, and nothing would say so.
  private static func requireOpenCollections(
    _ engine: any KeychainEngine, _ choice: KeychainChoice
  ) throws {
    guard let collections = engine.collections else { return }
    let (locked, refusal): ([String], StoreError?)
    do throws(StoreError) {
      (locked, refusal) = try unlock(collections, of: engine)
      _ = try engine.items()
    } catch { throw Failure(choice.rawValue, error) }
    guard !locked.isEmpty else { return }
    let names = locked.map { "“\($0)”" }.joined(separator: ", ")
    let reason = refusal.map { " (\($0.message))" } ?? ""
    throw Failure(
      choice.rawValue,
      "nothing was moved, as \(locked.count == 1 ? "its collection \(names) is" : "its collections \(names) are") locked\(reason); "
        + "run it again where the service can show its window, and type its passphrase there", .locked)
  }

  /// Has the service ask in its own window. Returns what is locked then, and why.
  private static func unlock(
    _ collections: any CollectionKeychain, of engine: any KeychainEngine
  ) throws(StoreError) -> ([String], StoreError?) {
    if try collections.lockedCollections().isEmpty { return ([], nil) }
    var refusal: StoreError?
    do throws(StoreError) {
      guard let none = try? SecretBytes() else { throw .outOfMemory }
      try engine.locking.unlock(none)
    } catch { refusal = error }
    return (try collections.lockedCollections(), refusal)
  }

  /// The name that a vault notes of an item's collection, where that is not the one that clients store in.
  private static func collection(
    of engine: any KeychainEngine, _ target: KeychainChoice
  ) throws -> (Item) -> ExactString? {
    guard target == .vault, let collections = engine.collections else { return { _ in nil } }
    let standard: ExactString?
    do throws(StoreError) { standard = try collections.defaultCollection() } catch {
      throw Failure(engine.name, error)
    }
    return { item in
      guard let name = item.collection, name != standard, name != "login" else { return nil }
      guard ServiceObject.Collection(name: name.string) == nil else { return name }
      return ExactString(ServiceObject.Collection.name(forLabel: name.string))
    }
  }

  /// Why a keychain of a cluster can't keep an item; nil: it can.
  private static func refusal(_ item: Item) -> StoreError? {
    do throws(StoreError) { try ClusterKeychain.limits.check(item) } catch { return error }
    return item.size > ClusterFormat.largestValue ? .tooLarge(limit: ClusterFormat.largestValue) : nil
  }

  /// From now on `auto` means the keychain that the items are in. It never means a cluster's.
  package func settle() {
    guard target != .cluster else { return }
    ChosenKeychain.change(to: target, state: places.state)
  }

  /// The store that asks before a secret leaves its keychain: through the running mount, else on this command's terminal.
  private static func asking(_ source: any KeychainEngine, _ places: StoragePaths) -> KeychainStore {
    let record = AccessLog(stateFolder: places.state)
    let mount = MountAuthenticator(
      runtimeFolder: places.runtime, fallback: HelperAuthenticator(vault: places.vault, state: places.state),
      record: record)
    return KeychainStore(engine: source, controller: AccessController(mount, .relaying, record: record))
  }

  /// Where an item stands in the tree.
  package static func path(_ identity: ItemIdentity) -> String {
    let name = ItemFolderName(identity)
    let folders = [name.parent, name.leaf].compactMap { $0?.string }
    return (["keychain", name.itemClass.rawValue] + folders).joined(separator: "/")
  }
}

/// Opens the keychains of a move.
private struct KeychainOpener {
  private let places: StoragePaths
  private let options: KeychainMove.Options

  init(_ places: StoragePaths, _ options: KeychainMove.Options) {
    (self.places, self.options) = (places, options)
  }

  func open(_ choice: KeychainChoice) throws -> any KeychainEngine {
    var opening = KeychainConfiguration(choice: choice)
    if options.allowsPlainSession { opening.plainSession = true }
    if choice == .cluster { return try openCluster(opening) }
    if let engine = try openByMount(opening) { return engine }
    guard let engine = try places.open(opening).engine else { throw Failure(nil, "there is no keychain") }
    do throws(StoreError) { try unlock(engine) } catch {
      guard error == .locked, choice == .vault else { throw Failure(choice.rawValue, error) }
      throw Failure(
        choice.rawValue,
        "it is locked, and no passphrase was given: it is asked for on a terminal, else it is the first line of standard input; nothing was moved",
        .locked)
    }
    return engine
  }

  /// The mount's process alone reaches it, and has a person unlock it.
  private func openCluster(_ opening: KeychainConfiguration) throws -> any KeychainEngine {
    guard let engine = try places.openUnlocked(opening).engine else {
      throw Failure(nil, "there is no keychain")
    }
    do throws(StoreError) {
      if !engine.locking.isOpenThroughout, UnlockController.isWantedByEnvironment {
        try engine.remote?.askToUnlock(for: "keychain")
      }
      _ = try engine.items()
      guard engine.locking.isOpenThroughout else { throw .locked }
    } catch { throw Failure(opening.choice.rawValue, error) }
    return engine
  }

  /// The keychain as the mount has unlocked it. nil: it has not, or secrets have to be sealed again, for which it takes
  /// the keys.
  private func openByMount(_ opening: KeychainConfiguration) throws -> (any KeychainEngine)? {
    guard !options.seals, let engine = try places.openUnlocked(opening).engine,
      engine.remote?.decidesAccess == true
    else { return nil }
    guard engine.locking.isOpenThroughout, let items = try? engine.items() else { return nil }
    return items.contains(where: \.isToBeSealed) ? nil : engine
  }

  private func unlock(_ engine: any KeychainEngine) throws(StoreError) {
    do throws(StoreError) {
      _ = try engine.items()
      if engine.locking.isOpenThroughout { return }
    } catch {
      guard error == .locked else { throw error }
    }
    guard let passphrase = try? engine.locking.needsPassphrase ? options.passphrase() : SecretBytes() else {
      throw .locked
    }
    try engine.locking.unlock(passphrase)
  }
}
