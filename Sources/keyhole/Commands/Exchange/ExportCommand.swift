public import ArgumentParser
public import Formats
import ImportExport
import Model
import Platform
import Prompting
import SecretMemory
import Service
import Store
import Suites
import Tree

struct ExportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export", abstract: "Write settings and secrets as one file.",
    discussion: """
      Without a path, everything. Where a secret is among it, the file is sealed under a passphrase that is \
      asked for, or read as the first line of standard input; --plain leaves it unsealed. Where a secret is locked or \
      refused, nothing is written. Of one \
      suite, `plist` is what `defaults export` of macOS writes. A secret that is damaged is named and left out, and \
      the command fails; all others are written.
      """)

  @OptionGroup var quiet: QuietOption

  @Argument(
    help: "Paths of the tree or of a mount, or short names of items.", completion: .treePath)
  var paths: [String] = []

  @Option(help: "json, plist, env or tar.")
  var format = ExportFormat.json

  @Option(
    name: .shortAndLong,
    help:
      "The file to write; without it, standard output. It is there whole or not at all, and takes the place of a file of that name.",
    completion: .file())
  var output: String?

  @Flag(help: "Do not seal secrets.")
  var plain = false

  @OptionGroup var cost: SealingCostOption

  @Flag(help: "With --format env, begin each name with its service: SERVICE_ACCOUNT.")
  var prefix = false

  func validate() throws {
    if prefix, format != .env { throw ValidationError("--prefix is for --format env") }
  }

  func run() throws {
    quiet.apply()
    allowUnlockedMemoryWithoutSwap()
    let opened = try (paths.isEmpty ? [""] : paths).map { try OpenedPath($0, .folders) }
    let wanted = opened.map(\.path)
    let session = (opened.first { $0.path.needsKeychain } ?? opened[0]).session
    if wanted.contains(where: \.needsKeychain) { session.askToUnlock() }
    try session.requireTrust()
    var collection = ExportCollection(session: session)
    for path in wanted { try collection.add(path) }
    collection.noteDamagedEntries()
    try session.requireTrust()
    let isSealed = !(collection.contents.items.isEmpty && collection.contents.collections.isEmpty) && !plain
    if !isSealed {
      try writeShowingProgress(collection, nil)
    } else {
      try writeShowingProgress(collection, try Passphrases.new())
    }
    reportLeftOut(collection)
    try report(collection.damaged)
  }

  private func report(_ damaged: DamagedSecrets) throws {
    for path in damaged.paths.dropFirst() {
      StandardError.write("keyhole: \(path.escapedForTerminal): it is damaged and was left out\n")
    }
    if let failure = damaged.failure { throw failure }
  }

  /// A variable has room for one value; in the others, attributes are those of the mount.
  private func reportLeftOut(_ collection: ExportCollection) {
    guard format == .env else {
      for (path, count) in collection.unlistedAttributes {
        let what = count == 1 ? "1 attribute was" : "\(count) attributes were"
        StandardError.write(
          "keyhole: \(path.escapedForTerminal): \(what) left out: an export has no place for a name that is empty or longer "
            + "than 250 bytes; `keyhole backup` and `keyhole migrate` have it\n")
      }
      return
    }
    for item in collection.contents.items where item.otpauth != nil {
      let path = "\(item.path)/\(ItemSecrets.otpauthName)".escapedForTerminal
      StandardError.write("keyhole: \(path): env has no place for it; it was left out\n")
    }
  }

  /// On the terminal that the export itself goes to, a bar would be in its way.
  private func writeShowingProgress(
    _ collection: ExportCollection, _ passphrase: consuming SecretBytes?
  ) throws {
    guard output != nil || !StandardStream.output.isTerminal else { return try write(collection, passphrase) }
    let bar = ProgressBar(total: collection.contents.items.count, "exporting")
    defer { bar.end() }
    collection.damaged.onSecret = { bar.advance() }
    try write(collection, passphrase)
  }

  private func write(_ collection: ExportCollection, _ passphrase: consuming SecretBytes?) throws {
    guard let output else {
      do throws(FormatError) { try collection.openGuardedSecrets() } catch {
        throw Failure(nil, error.reason, error.kind)
      }
      return try write(collection, passphrase, StandardStream.output.number)
    }
    var file = try OutputFile(output)
    try write(collection, passphrase, file.descriptor)
    try file.finish()
  }

  private func write(
    _ collection: ExportCollection, _ passphrase: consuming SecretBytes?, _ descriptor: Int32
  ) throws {
    do throws(FormatError) {
      let file = try Self.file(descriptor, passphrase, cost.value)
      var writer = ExportWriter(format, propertyLists: PropertyLists(), paths: TreePaths())
      writer.prefixesService = prefix
      try writer.write(collection.contents, to: file.sink)
      try file.finish()
    } catch {
      throw Failure(nil, error.reason, error.kind)
    }
  }
}

extension ExportCommand {
  private static func file(
    _ descriptor: Int32, _ passphrase: borrowing SecretBytes?, _ cost: UInt8
  ) throws(FormatError) -> ExportFile {
    switch passphrase {
    case .some(let passphrase): try ExportFile(descriptor, sealedTo: passphrase, cost: cost)
    case .none: try ExportFile(descriptor)
    }
  }
}

extension ExportFormat: ExpressibleByArgument {}
