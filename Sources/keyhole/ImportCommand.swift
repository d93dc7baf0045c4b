public import ArgumentParser
import Glibc
import Model
import SecretMemory
import Store
import Suites
public import Transfer
import Tree

struct ImportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import", abstract: "Take over settings and secrets from a file.",
    discussion: """
      What `keyhole export` writes, lists of `defaults export` of macOS, .env files, XML and CSV of KeePass, \
      CSV of Chrome and Firefox, and stores of pass. All of it is taken over or nothing. A name that is taken \
      by another value is an error, unless --replace or --keep says which stays.
      """)

  @Argument(help: "The file, or the folder of pass; without it, standard input.", completion: .file())
  var file: String?

  @Option(help: "json, plist, env, tar, keepass, csv or pass; without it, the content tells.")
  var format: ImportFormat?

  @Option(
    help: "Where keys and variables go that name no place: defaults/SUITE, keychain/generic/SERVICE.",
    completion: .treePath)
  var to: String?

  @Flag(
    name: [.customShort("n"), .long],
    help: "Only print what would be done: new, same, replace, keep or conflict, and the path.")
  var dryRun = false

  @Flag(help: "Values that are there already give way.")
  var replace = false

  @Flag(help: "Values that are there already stay.")
  var keep = false

  func validate() throws {
    if replace, keep { throw ValidationError("--replace and --keep contradict each other") }
    if let to, Target(to) == nil {
      throw ValidationError("--to takes defaults/SUITE or keychain/generic/SERVICE, not \(to)")
    }
  }

  func run() throws {
    let stores = try Stores(for: TreePath(""), .ofMount())
    let contents = try read(stores)
    let plan = try ImportPlan(contents, stores, onConflict: replace ? .replace : keep ? .keep : .fail)
    if dryRun { StandardOutput.write(plan.description) }
    if let conflict = plan.conflict { throw Failure(nil, conflict) }
    guard !dryRun else { return }
    let bar = ProgressBar(total: plan.changes)
    try ImportRun(stores).apply(plan) { bar.advance() }
    bar.end()
    if isatty(STDOUT_FILENO) == 1 { StandardOutput.print(plan.summary) }
  }

  private func read(_ stores: Stores) throws -> Contents {
    let target = to.flatMap(Target.init)
    let importing = Importing(
      codec: stores.settings.codec, propertyLists: PropertyLists(), suite: target?.suite,
      service: target?.service)
    do throws(TransferError) {
      if let file, format == .pass || Importing.isPasswordStore(file) {
        return try Importing.passwordStore(file)
      }
      var source = try Source.open(file)
      if source.isSealed { source = try opened(source) }
      guard let format = format ?? Importing.format(of: source) else {
        throw TransferError("its format can't be told; --format names it")
      }
      return try importing.read(source, as: format)
    } catch {
      throw Failure(file ?? "standard input", error.reason)
    }
  }

  private func opened(_ source: Source) throws(TransferError) -> Source {
    guard file != nil else {
      throw TransferError("a sealed export has to be a file: its passphrase is read here")
    }
    let passphrase: SecretBytes
    do { passphrase = try Passphrases.present() } catch let failure as Failure {
      throw TransferError(failure.reason)
    } catch {
      throw TransferError("the passphrase can't be read")
    }
    return try source.opened(with: passphrase)
  }

  private struct Target {
    var suite: ExactString?
    var service: ExactString?

    init?(_ path: String) {
      let parts = TreePath(path).components
      let name = parts.last.flatMap { try? PathName(creating: $0.utf8).plain }
      switch (parts.first, parts.count) {
      case ("defaults", 2): suite = name
      case ("keychain", 3) where parts[1] == "generic": service = name
      default: return nil
      }
      if name == nil { return nil }
    }
  }
}

extension ImportFormat: ExpressibleByArgument {}
