import ArgumentParser
import KeychainSelection
import Model
import Prompting
import SecretMemory
import Service
import Store

struct MigrateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "migrate",
    abstract: "Move all items from one keychain to another, or all settings to or from a cluster.",
    discussion: """
      The items go with their secrets and attributes, all of them or none. What a Secret Service has in its collection \
      `session`, which is never stored, stays there. Times are the Secret Service's own \
      where it is the new keychain. A collection of a Secret Service that is locked is unlocked first, and its items have its name as \
      `user.keyhole.collection` in a vault. Where items of a Secret Service have the same path, as two of one label, the oldest keeps it; \
      the others get the class `other` and their label as the name, with a number behind it, and programs find them by label and attributes \
      as before. Interrupted, it leaves every item where it was; run it again.

      `cluster` is the store of a cluster that is mounted with `-o store=`: its keychain, or, with `files`, its settings, which go \
      suite by suite. What a cluster does not keep (items of a device alone, of an enrolled finger or with a password of \
      their own, values over 1 MiB), and suites of which the other store has other values, are named and stay, and the exit code is 1. \
      Of each thing the copy is read back before the original is removed: where it is interrupted, or the cluster goes away, \
      nothing is lost; run it again. The suite `keyhole` and the configuration in the vault, earlier versions and views stay.
      """)

  enum Place: String, CaseIterable, ExpressibleByArgument {
    case vault
    case secretService = "secret-service"
    case cluster
    case files

    /// nil: it holds settings.
    fileprivate var choice: KeychainChoice? {
      switch self {
      case .vault: .vault
      case .secretService: .secretService
      case .cluster: .cluster
      case .files: nil
      }
    }
  }

  @Option(help: "vault, secret-service or cluster; files for the settings of this machine.")
  var from: Place

  @Option(help: "vault, secret-service or cluster; files for the settings of this machine.")
  var to: Place

  @Flag(help: "Say what would be moved, and change nothing.")
  var dryRun = false

  @Flag(help: "Take a Secret Service also without encryption on the bus.")
  var plainSession = false

  @Flag(help: "Have the vault seal the items before a Secret Service gets them.")
  var sealed = false

  @OptionGroup var quiet: QuietOption

  private var movesSettings: Bool { from == .files || to == .files }

  func validate() throws {
    guard from != to else { throw ValidationError("--from and --to name the same place") }
    guard !movesSettings || from == .cluster || to == .cluster else {
      throw ValidationError("settings are moved between files and cluster")
    }
    guard !sealed || to == .secretService else {
      throw ValidationError(
        movesSettings ? "settings are not sealed" : "what is in a vault or a cluster is sealed anyway")
    }
  }

  func run() throws {
    quiet.apply()
    allowUnlockedMemoryWithoutSwap()
    guard let source = from.choice, let target = to.choice else { return try moveSettings() }
    try moveItems(source, target)
  }

  /// Names what stays.
  private func tellLeft(_ path: String, _ error: StoreError) {
    Failure(path, "it stays where it is: \(error.message)", error.failureKind).report()
  }

  private func end(_ left: Int, _ noun: String) throws {
    guard left > 0 else { return }
    let verb = left == 1 ? "stays" : "stay"
    throw Failure(nil, "\(Self.count(left, noun)) \(dryRun ? "would stay" : verb) in \(from.rawValue)")
  }

  private static func count(_ count: Int, _ noun: String) -> String {
    count == 1 ? "1 \(noun)" : "\(count) \(noun)s"
  }
}

// MARK: - Items

extension MigrateCommand {
  private func moveItems(_ source: KeychainChoice, _ target: KeychainChoice) throws {
    var options = KeychainMove.Options { try SecretInput.passphrase("Passphrase of the vault: ") }
    (options.allowsPlainSession, options.seals) = (plainSession, sealed)
    let move = try KeychainMove(from: source, to: target, StoragePaths.ofMount(), options)
    do {
      let items = try move.migration.plan()
      let inMemory = try move.migration.inMemory()
      defer { tell(inMemory: inMemory) }
      if dryRun { return try tell(items, move.migration.refused(of: items)) }
      let bar = ProgressBar(total: items.count, "moving")
      defer { bar.end() }
      let summary = try move.migration.run(items) { bar.show($0) }
      bar.end()
      move.settle()
      let left = Set(summary.left.map(\.id))
      let moved = items.filter { $0.isShown && !left.contains($0.id) }
      StandardOutput.print("moved \(Self.count(moved.count, "item")) from \(from.rawValue) to \(to.rawValue)")
      tell(summary)
      for left in summary.left { tellLeft(KeychainMove.path(left.item), left.error) }
      try end(summary.left.count, "item")
    } catch let error as KeychainMigration.Failure {
      let subject = error.item.map(KeychainMove.path) ?? from.rawValue
      let result =
        error.isCopied
        ? "all items are in \(to.rawValue), and some still in \(from.rawValue) too; run it again"
        : "nothing was moved"
      throw Failure(subject, "\(result): \(error.error.message)", error.error.failureKind)
    }
  }

  private func tell(inMemory items: [Item]) {
    guard !items.isEmpty else { return }
    StandardError.note(
      "\(from.rawValue): \(Self.count(items.count, "item")) of the collection `session` left out, "
        + "which ends with the login session")
  }

  /// Where an `otpauth:` URI is now, if it is another place.
  private func tell(_ summary: KeychainMigration.Summary) {
    for path in summary.companions {
      StandardOutput.print(
        "\(path.escapedForTerminal): an item of its own, because \(to.rawValue) holds one secret of an item")
    }
    for item in summary.renamed {
      StandardOutput.print(
        "\(KeychainMove.path(item.present).escapedForTerminal): its label and its attributes are as before; another item is "
          + KeychainMove.path(item.former).escapedForTerminal)
    }
    for path in summary.joined {
      let file = "\(path)/\(ItemSecrets.otpauthName)".escapedForTerminal
      StandardOutput.print("\(file): the item's second secret, which was an item of its own")
    }
  }

  private func tell(_ items: [Item], _ refused: [KeychainMigration.Left]) throws {
    let left = Set(refused.map(\.id))
    let items = items.filter { $0.isShown && !left.contains($0.id) }
    for path in items.map({ KeychainMove.path($0.identity) }).sorted() {
      StandardOutput.print(path.escapedForTerminal)
    }
    StandardOutput.print(
      "would move \(Self.count(items.count, "item")) from \(from.rawValue) to \(to.rawValue)")
    let renamed = KeychainMigration.renamed(of: items)
    if renamed > 0 {
      StandardError.note(
        "\(Self.count(renamed, "item")) with the path of another one: in \(to.rawValue) below keychain/other, with the label as the name"
      )
    }
    for left in refused { tellLeft(KeychainMove.path(left.item), left.error) }
    try end(refused.count, "item")
  }
}

// MARK: - Settings

extension MigrateCommand {
  private func moveSettings() throws {
    let move = try SettingsMove(to == .cluster ? .toCluster : .fromCluster, StoragePaths.ofMount())
    do {
      let suites = try move.migration.plan()
      let bar = dryRun ? nil : ProgressBar(total: suites.count, "moving")
      defer { bar?.end() }
      var left: [(suite: ExactString, error: StoreError)] = []
      for (index, suite) in suites.enumerated() {
        let error = try dryRun ? move.migration.check(suite) : move.migration.move(suite)
        if let error {
          left.append((suite, error))
        } else if dryRun {
          StandardOutput.print(SettingsMove.path(suite).escapedForTerminal)
        }
        bar?.show(index + 1)
      }
      bar?.end()
      StandardOutput.print(
        "\(dryRun ? "would move" : "moved") \(Self.count(suites.count - left.count, "suite")) "
          + "from \(from.rawValue) to \(to.rawValue)")
      for left in left { tellLeft(SettingsMove.path(left.suite), left.error) }
      try end(left.count, "suite")
    } catch let error as SettingsMigration.Failure {
      let result =
        error.isCopied
        ? "it is in \(to.rawValue), and some of it still in \(from.rawValue) too; run it again"
        : "it and what follows was not moved; run it again"
      throw Failure(
        error.suite.map(SettingsMove.path) ?? from.rawValue,
        error.suite == nil ? error.error.message : "\(result): \(error.error.message)",
        error.error.failureKind)
    }
  }
}
