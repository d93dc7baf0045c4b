import ArgumentParser
import Model
import Platform
import Prompting
import SecretMemory
import Service
import Tree
import ViewFormats
import Views

struct ViewCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "view", abstract: "Make files of other programs' formats from items and settings.",
    discussion: """
      views/NAME is such a file: it is made when it is opened, under the rules of every item in it, and what is written to it \
      goes to the items. Without arguments the views are listed, with a name alone the file is shown with {{ PATH }} in the place \
      of each value, and what is missing in it. A view is renamed by `keyhole mv` and removed by `keyhole rm`; its items stay.

      Sources are paths of the tree: of an item, whose account is the name, of a setting, whose key is the name, of a service or a \
      suite with all that is in it, or NAME=PATH. In files of sections a name is SECTION/KEY, in those of servers SERVER/USER, in \
      pgpass HOST:PORT:DATABASE:USER.
      """)

  @Argument(help: "The name of the view.")
  var name: String?

  @Option(
    help: "Make a view of this format: env, json, ini, netrc, npmrc, pgpass or docker-config.",
    completion: .list(ViewMaker.formats))
  var format: String?

  @Option(
    help:
      "The reader of an environment file: portable (all but docker), compose, docker, node, python, sh or systemd.",
    completion: .list(ViewMaker.dialects))
  var dialect: String?

  @Option(help: "The folder in which new entries become items: keychain/generic/SERVICE.")
  var new: String?

  @Option(
    parsing: .upToNextOption, help: "The items and settings of the view, each PATH or NAME=PATH.",
    completion: .treePath)
  var from: [String] = []

  @Option(
    help:
      "Make a view from a text with references such as {{ keychain/generic/app/token }}; -: standard input.",
    completion: .file())
  var template: String?

  @Option(help: "Put a symbolic link to the view there.", completion: .file())
  var link: String?

  @Option(
    help: "Take over a file that has replaced a link: show which entries would change, and ask.",
    completion: .file())
  var takeIn: String?

  @Flag(help: "With --take-in: do not ask.")
  var yes = false

  @Flag(help: "The list as a JSON array of objects: name, path, format, dialect, references and links.")
  var json = false

  func validate() throws {
    let others = [name, format, dialect, new, template, link, takeIn].contains { $0 != nil } || !from.isEmpty
    if json, others { throw ValidationError("--json is for the list of all views, and goes alone") }
  }

  func run() throws {
    allowUnlockedMemoryWithoutSwap()
    if let takeIn { return try takeOver(takeIn) }
    guard let name else {
      guard format == nil, template == nil, link == nil else {
        throw UsageError(message: "a view needs a name")
      }
      return try showList()
    }
    guard format != nil || template != nil || link != nil else {
      guard from.isEmpty, new == nil, dialect == nil else {
        let attribute = "`keyhole attr \("views/\(name)".quotedForShell) keyhole.dialect` and `keyhole.new`"
        throw UsageError(
          message:
            "give --format and --from, --template, --link or --take-in; of a view that is there, \(attribute) change these"
        )
      }
      return try show(name)
    }
    if let format { try make(name, format) }
    if let template { try make(name, template: template) }
    if let link { try ViewLinks(name).link(link) }
  }

  private func showList() throws {
    let views = try ViewMaker().list()
    guard json else { return views.forEach { StandardOutput.print($0.line.forStandardOutput) } }
    var list = JSONList()
    for view in views {
      list.add([
        ("name", view.name.quotedAsJSON), ("path", ("views/" + view.name).quotedAsJSON),
        ("format", view.format.rawValue.quotedAsJSON),
        ("dialect", view.dialect?.rawValue.quotedAsJSON ?? "null"), ("references", "\(view.references)"),
        ("links", "[" + view.links.map(\.quotedAsJSON).joined(separator: ", ") + "]"),
      ])
    }
    list.end()
  }

  private func show(_ name: String) throws {
    let maker = try ViewMaker()
    let text = try maker.outline(name)
    StandardOutput.write(text.span)
    let missing = try maker.missingReferences(name)
    guard let first = missing.first else { return }
    let rest = missing.count > 1 ? " and \(missing.count - 1) more" : ""
    throw Failure(
      "views/" + name,
      "it can't be read, because \(first)\(rest) is not there; `keyhole undo \(first.quotedForShell)` brings back what was removed, "
        + "`keyhole set \(first.quotedForShell)` makes it again; or write the whole file, without it or with a value for it",
      .notFound)
  }

  private func make(_ name: String, _ word: String) throws {
    guard let format = ViewFormat(rawValue: word), format.isWritable else {
      throw UsageError(message: "a format is one of \(ViewMaker.formats.joined(separator: ", "))")
    }
    guard template == nil else { throw UsageError(message: "--template makes a view without --format") }
    try ViewMaker().make(name, format, try chosenDialect(), newPlace: new, from: from)
  }

  private func make(_ name: String, template file: String) throws {
    guard from.isEmpty, new == nil else {
      throw UsageError(message: "--from and --new are for a --format; a template names its items by itself")
    }
    let text: [UInt8]
    do {
      text = try file == "-" ? SettingInput.read(limit: FileTree.secretLimit) : Files.read(file)
    } catch let error as Errno {
      throw Failure(file, "it can't be read: \(error)")
    }
    try ViewMaker().make(name, template: SecretBytes(copying: text.span), try chosenDialect())
  }

  private func chosenDialect() throws -> EnvDialect {
    guard let dialect else { return .portable }
    guard let known = EnvDialect(rawValue: dialect) else {
      throw UsageError(message: "a dialect is one of \(ViewMaker.dialects.joined(separator: ", "))")
    }
    return known
  }
}

extension ViewMaker.Listed {
  /// The name, format, dialect, number of references and links, a tab between.
  fileprivate var line: String {
    let kind = dialect.map { "\(format.rawValue) (\($0.rawValue))" } ?? format.rawValue
    let list = links.isEmpty ? "-" : links.joined(separator: " ")
    return [name, kind, "\(references)", list].joined(separator: "\t")
  }
}

extension ViewCommand {
  private func takeOver(_ file: String) throws {
    guard format == nil, template == nil, link == nil, from.isEmpty else {
      throw UsageError(message: "--take-in goes alone, or with the name of the view")
    }
    let links = try name.map { try ViewLinks($0) } ?? ViewLinks(ofFile: file)
    let replacement = try links.read(file)
    let preview = replacement.preview
    for (word, names) in [
      ("changed", preview.changed), ("added", preview.added), ("removed", preview.removed),
    ] {
      for name in names { StandardOutput.print(columns: word, name) }
    }
    guard yes || isWanted(links.name) else {
      let reason =
        StandardStream.input.isTerminal ? "" : "; without a terminal, --yes behind the file takes it in"
      throw Failure(file, "nothing was taken in, and the file is still there\(reason)", .refused)
    }
    try links.take(replacement)
  }

  private func isWanted(_ view: String) -> Bool {
    StandardStream.input.isTerminal
      && Confirmation.isGiven("Take this into views/\(view), and put the link back")
  }
}
