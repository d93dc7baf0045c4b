import ArgumentParser
import KeychainSelection
import Model
import Prompting
import SecretMemory
import Service
import Store

struct MigrateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "migrate", abstract: "Move all items from one keychain to another.",
    discussion: """
      The items go with their secrets and attributes, all of them or none. What a Secret Service has in its collection \
      `session`, which is never stored, stays there. Times are the Secret Service's own \
      where it is the new keychain. Interrupted, it leaves every item where it was; run it again.
      """)

  enum Keychain: String, CaseIterable, ExpressibleByArgument {
    case vault
    case secretService = "secret-service"

    fileprivate var choice: KeychainChoice {
      switch self {
      case .vault: .vault
      case .secretService: .secretService
      }
    }
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

  @OptionGroup var quiet: QuietOption

  func validate() throws {
    guard from != to else { throw ValidationError("--from and --to name the same keychain") }
    guard !sealed || to == .secretService else {
      throw ValidationError("what is in the vault is sealed anyway")
    }
  }

  func run() throws {
    quiet.apply()
    allowUnlockedMemoryWithoutSwap()
    var options = KeychainMove.Options { try SecretInput.ask("Passphrase: ") }
    (options.allowsPlainSession, options.seals) = (plainSession, sealed)
    let move = try KeychainMove(from: from.choice, to: to.choice, StoragePaths.ofMount(), options)
    do throws(KeychainMigration.Failure) {
      let (items, left) = (try move.migration.plan(), try move.migration.inMemory())
      defer { tell(left: left) }
      guard !dryRun else { return tell(items) }
      let bar = ProgressBar(total: items.count, "moving")
      defer { bar.end() }
      let summary = try move.migration.run(items) { bar.show($0) }
      bar.end()
      move.settle()
      StandardOutput.print(
        "moved \(Self.count(items.filter(\.isShown))) from \(from.rawValue) to \(to.rawValue)")
      tell(summary)
    } catch {
      let subject = error.item.map(KeychainMove.path) ?? from.rawValue
      throw Failure(subject, "nothing was moved: \(error.error.message)", error.error.failureKind)
    }
  }

  private func tell(left: [Item]) {
    guard !left.isEmpty else { return }
    StandardError.note(
      "\(from.rawValue): \(Self.count(left)) of the collection `session` left out, "
        + "which ends with the login session")
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

  private func tell(_ items: [Item]) {
    let items = items.filter(\.isShown)
    for path in items.map({ KeychainMove.path($0.identity) }).sorted() {
      StandardOutput.print(path.escapedForTerminal)
    }
    StandardOutput.print("would move \(Self.count(items)) from \(from.rawValue) to \(to.rawValue)")
  }

  private static func count(_ items: [Item]) -> String {
    items.count == 1 ? "1 item" : "\(items.count) items"
  }
}
