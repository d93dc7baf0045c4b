public import ArgumentParser
public import Formats
public import ImportExport
import Model
import Platform
import Prompting
import SecretMemory
import Service
import Store
import Suites
import Tree

struct ImportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import", abstract: "Take over settings and secrets from a file.",
    discussion: """
      Files of `keyhole export`, lists of `defaults export` of macOS, .env files, JSON and CSV of Bitwarden, \
      CSV of 1Password, Chrome and Firefox, XML and CSV of KeePass and KeePassXC, and stores of pass and gopass. \
      All of it is taken over or nothing, also where the command is interrupted. A name that is taken by another \
      value, attribute or flag is an error, unless --replace or --keep says which stays.
      """)

  @OptionGroup var quiet: QuietOption

  @Argument(help: "The file, or the folder of pass; `-` or none: standard input.", completion: .file())
  var file: String?

  @Option(help: "json, plist, env, tar, keepass, csv, bitwarden or pass; without it, the content tells.")
  var format: ImportFormat?

  @Option(
    help: "Where keys, variables and entries of pass go: defaults/SUITE, keychain/generic/SERVICE.",
    completion: .treePath)
  var to: String?

  @Flag(
    name: [.customShort("n"), .long],
    help: "Only print what would be done: new, same, replace, keep or conflict, and the path.")
  var dryRun = false

  @Flag(help: "Values, attributes and flags that are there already give way.")
  var replace = false

  @Flag(help: "Values, attributes and flags that are there already stay.")
  var keep = false

  @Option(
    help: """
      number, merge or refuse: what is done with a second item of one name. `ACCOUNT (2)`; one item where both have \
      the same secret; an error.
      """)
  var duplicates = ImportOptions.Duplicates.number

  func validate() throws {
    if replace, keep { throw ValidationError("--replace and --keep contradict each other") }
  }

  func run() throws {
    quiet.apply()
    allowUnlockedMemoryWithoutSwap()
    let contents = try read(into: target())
    let places = try StoragePaths.ofMount()
    let stores = try TreeSession.unlockedStores(
      for: TreePath(contents.needsKeychain ? "" : "defaults"), places)
    var options = ImportOptions()
    options.conflicts = replace ? .replace : keep ? .keep : .fail
    options.duplicates = duplicates
    do throws(ImportExportError) {
      let plan = try plan(contents, stores, options)
      if dryRun { StandardOutput.write(plan.text) }
      if let conflict = plan.conflict { throw ImportExportError(nil, conflict.message) }
      guard !dryRun else { return }
      try apply(plan, stores, places)
    } catch {
      throw Failure(error)
    }
    if !dryRun { try stores.add(contents.collections, replacing: replace) }
  }

  private func plan(
    _ contents: Contents, _ stores: Stores, _ options: ImportOptions
  ) throws(ImportExportError) -> ImportPlan {
    do throws(ImportExportError) {
      return try ImportPlan(contents, settings: stores.settings, keychain: stores.keychain, options)
    } catch {
      throw error.adding("; nothing was imported")
    }
  }

  private func apply(_ plan: ImportPlan, _ stores: Stores, _ places: StoragePaths) throws(ImportExportError) {
    let run = ImportRun(
      settings: stores.settings, keychain: stores.keychain, stateFolder: places.state
    ) { (present, new, path) throws(StoreError) in
      try stores.permission(toReplace: present, with: new, at: path)
    }
    if run.isItemByItem(plan) {
      StandardError.write(
        "keyhole: these items are taken over one at a time; if it is interrupted, the next command takes it back\n"
      )
    }
    let bar = ProgressBar(total: plan.changes, "importing")
    defer { bar.end() }
    try run.apply(plan) { bar.advance() }
    bar.end()
    if plan.summary.items > 0 { stores.settleKeychain() }
    plan.summary.report()
    reportUnmetFlags(of: plan, stores)
  }

  /// Flags that can't be met here are kept: the items are named.
  private func reportUnmetFlags(of plan: ImportPlan, _ stores: Stores) {
    guard let keychain = stores.keychain else { return }
    let factors = ApprovalFactors.ofMachine(keychain)
    for item in plan.items where item.isWritten && !item.access.isEmpty {
      do throws(StoreError) { try item.access.requireSatisfiable(with: factors) } catch {
        let text = "\(item.path): its flags are kept, and its secret can't be opened here: \(error.message)"
        StandardError.write("keyhole: \(text.escapedForTerminal)\n")
      }
    }
  }

  private func target() throws -> ImportTarget? {
    guard let to else { return nil }
    guard let path = try? OpenedPath.path(to), let target = ImportTarget(path.string) else {
      throw UsageError(message: "--to takes defaults/SUITE or keychain/generic/SERVICE, not \(to)")
    }
    return target
  }

  /// nil: standard input.
  private var source: String? { file == "-" ? nil : file }

  private func read(into target: ImportTarget?) throws -> Contents {
    do throws(FormatError) {
      if let file = source, format == .pass || PasswordStore.isStore(file) {
        guard target?.suite == nil else {
          throw FormatError("a store of pass has secrets: --to keychain/generic/SERVICE")
        }
        return try PasswordStore(folder: file, service: target?.service).read()
      }
      let source = try opened()
      let found = try ImportReader.format(of: source)
      guard let format = format ?? found else {
        throw FormatError("its format is not recognised; --format names it")
      }
      let reader = ImportReader(
        propertyLists: PropertyLists(), paths: TreePaths(), suite: target?.suite, service: target?.service)
      let contents = try reader.read(source, as: format)
      try source.check()
      return contents
    } catch {
      throw Failure(source ?? "standard input", error.reason, error.kind)
    }
  }

  private func opened() throws(FormatError) -> ByteSource {
    let opened = try ImportFile(source)
    guard let header = try opened.header() else { return try opened.source() }
    guard source != nil else {
      throw FormatError("a sealed export has to be a file: its passphrase is read here")
    }
    let passphrase: SecretBytes
    do { passphrase = try Passphrases.present() } catch let failure as Failure {
      throw FormatError(failure.reason)
    } catch {
      throw FormatError("the passphrase can't be read")
    }
    return try opened.source(opening: SealedFileOpener(header, passphrase: passphrase))
  }
}

extension Contents {
  fileprivate var needsKeychain: Bool { !items.isEmpty || !collections.isEmpty }
}

extension ImportFormat: ExpressibleByArgument {}
extension ImportOptions.Duplicates: ExpressibleByArgument {}

extension ImportPlan {
  /// A line a thing: what will be done, and the path.
  fileprivate var text: String {
    lines.map { "\($0.step.rawValue)\t\($0.path.forStandardOutput)\n" }.joined()
      + duplicates.map { "duplicate\t\($0.forStandardOutput)\n" }.joined()
      + summary.remarks.map { "left out\t\($0.forStandardOutput)\n" }.joined()
  }
}

extension ImportSummary {
  /// On a terminal always; else only where something of the import is not there under its own name.
  fileprivate func report() {
    if StandardStream.output.isTerminal {
      StandardOutput.print(line.escapedForTerminal)
    } else if !isComplete {
      StandardError.write("keyhole: \(line.escapedForTerminal)\n")
    }
    for path in codes {
      StandardError.write(
        "keyhole: \(path.escapedForTerminal): a one-time code that is an item of its own, not a second secret\n"
      )
    }
    for path in numbered {
      StandardError.write("keyhole: \(path.escapedForTerminal): a second item of this name\n")
    }
  }
}

extension Failure {
  init(_ error: ImportExportError) {
    self.init(error.subject, error.reason, error.kind)
  }
}
