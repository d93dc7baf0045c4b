import ArgumentParser
import Control
import KeychainSelection
import Model
import Prompting
import SecretMemory
import Service
import Store
import Tree

struct MigrateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "migrate", abstract: "Move all items from one keychain to another.",
    discussion: """
      The items go with their secrets and attributes, all of them or none. Times are the Secret Service's own \
      where it is the new keychain. Interrupted, it leaves every item where it was; run it again.
      """)

  enum Keychain: String, CaseIterable, ExpressibleByArgument {
    case vault
    case secretService = "secret-service"
  }

  @Option(help: "vault or secret-service.")
  var from: Keychain

  @Option(help: "vault or secret-service.")
  var to: Keychain

  @Flag(help: "Say what would be moved, and change nothing.")
  var dryRun = false

  @Flag(help: "Take a Secret Service also without encryption on the bus.")
  var plainSession = false

  @Flag(help: "Have the vault seal the items before a Secret Service gets them.")
  var sealed = false

  func validate() throws {
    guard from != to else { throw ValidationError("--from and --to name the same keychain") }
    guard !sealed || to == .secretService else {
      throw ValidationError("what is in the vault is sealed anyway")
    }
  }

  func run() throws {
    allowUnlockedMemoryWithoutSwap()
    let places = try StoragePaths.ofMount()
    let source = try open(from, places)
    try TrustNotice(source, places).require()
    let asking = asking(source, places)
    let migration = KeychainMigration(
      from: source, to: try open(to, places), sealing: sealed, path: Self.path
    ) { item throws(StoreError) in
      let path = Self.path(item.identity)
      return try asking.permission(for: item, to: .read, item.secrets, path: path, by: .current).fetch()
    }
    do throws(KeychainMigration.Failure) {
      let items = try migration.plan()
      guard !dryRun else { return tell(items) }
      let bar = ProgressBar(total: items.count)
      defer { bar.end() }
      let summary = try migration.run(items) { bar.show($0) }
      bar.end()
      // `auto` goes with the items.
      ChosenKeychain.change(to: to == .vault ? .vault : .secretService, state: places.state)
      StandardOutput.print(
        "moved \(Self.count(items.filter(\.isShown))) from \(from.rawValue) to \(to.rawValue)")
      tell(summary)
    } catch {
      let subject = error.item.map(Self.path) ?? from.rawValue
      throw Failure(subject, "nothing was moved: \(error.error.message)")
    }
  }

  /// Where an `otpauth:` URI is now, if it is another place.
  private func tell(_ summary: KeychainMigration.Summary) {
    for path in summary.companions {
      StandardOutput.print(
        "\(path.escapedForTerminal): an item of its own, because \(to.rawValue) holds one secret of an item")
    }
    for path in summary.joined {
      let file = "\(path)/\(ItemSecrets.otpauthName)".escapedForTerminal
      StandardOutput.print("\(file): the item's second secret, which was an item of its own")
    }
  }

  /// The store that asks before a secret leaves its keychain: through the running mount, else on this command's terminal.
  private func asking(_ source: any KeychainEngine, _ places: StoragePaths) -> KeychainStore {
    let record = AccessLog(stateFolder: places.state)
    let mount = MountAuthenticator(
      runtimeFolder: places.runtime, fallback: HelperAuthenticator(vault: places.vault, state: places.state),
      record: record)
    return KeychainStore(engine: source, controller: AccessController(mount, .relaying, record: record))
  }

  private func open(_ keychain: Keychain, _ places: StoragePaths) throws -> any KeychainEngine {
    var opening = KeychainConfiguration(choice: keychain == .vault ? .vault : .secretService)
    opening.allowsPlainSession = plainSession
    if let engine = try openByMount(opening, places) { return engine }
    guard let engine = try places.open(opening).engine else { throw Failure(nil, "there is no keychain") }
    do throws(StoreError) {
      try unlock(engine)
    } catch {
      throw Failure(keychain.rawValue, error)
    }
    return engine
  }

  /// The keychain as the mount has unlocked it. nil: it has not, or secrets have to be sealed again, for which it takes
  /// the keys.
  private func openByMount(_ opening: KeychainConfiguration, _ places: StoragePaths) throws -> (
    any KeychainEngine
  )? {
    guard !sealed, let engine = try places.openUnlocked(opening).engine, engine.remote?.decidesAccess == true
    else {
      return nil
    }
    guard engine.locking.isOpenThroughout, let items = try? engine.items() else { return nil }
    return items.contains(where: \.isToBeSealed) ? nil : engine
  }

  /// The vault's passphrase is asked for here; a Secret Service asks by itself.
  private func unlock(_ engine: any KeychainEngine) throws(StoreError) {
    do throws(StoreError) {
      _ = try engine.items()
      if engine.locking.isOpenThroughout { return }
    } catch {
      guard error == .locked else { throw error }
    }
    guard
      let passphrase = try? engine.locking.needsPassphrase ? SecretInput.ask("Passphrase: ") : SecretBytes()
    else {
      throw .locked
    }
    try engine.locking.unlock(passphrase)
  }

  private func tell(_ items: [Item]) {
    let items = items.filter(\.isShown)
    for path in items.map({ Self.path($0.identity) }).sorted() {
      StandardOutput.print(path.escapedForTerminal)
    }
    StandardOutput.print("would move \(Self.count(items)) from \(from.rawValue) to \(to.rawValue)")
  }

  private static func count(_ items: [Item]) -> String {
    items.count == 1 ? "1 item" : "\(items.count) items"
  }

  /// Where an item stands in the tree.
  static func path(_ identity: ItemIdentity) -> String {
    let name = ItemFolderName(identity)
    let folders = [name.parent, name.leaf].compactMap { $0?.string }
    return (["keychain", name.itemClass.rawValue] + folders).joined(separator: "/")
  }
}
