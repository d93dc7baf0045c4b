import ArgumentParser
import KeychainSelection
import Model
import Platform
import Prompting
import Service
import Tree

struct ListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "List a folder: names as they stand in paths, one a line.",
    discussion: """
      On a terminal names have colours, unless NO_COLOR is set. Without PATH it lists the current folder where that is in \
      a mount, else the top of the tree.
      """)

  @Flag(
    name: .short,
    help: "Type, size in bytes, time of the last change, and name; on a terminal in columns, else with tabs.")
  var long = false

  @Flag(name: .short, help: "Also `.keyhole`, which a listing of the top leaves out.")
  var all = false

  @Flag(name: .customShort("R"), help: "Everything below too, by its path from the folder.")
  var recursive = false

  @Flag(help: "A JSON array of objects: name, path, type, size and modified.")
  var json = false

  @OptionGroup var quiet: QuietOption

  @Argument(help: "A path of the tree or of a mount, or a short name.", completion: .treePath)
  var path: String?

  func run() throws {
    quiet.apply()
    let (session, path) = try opened()
    try show(ProgressBar.run("reading names") { try entries(session, path) }, session)
    if path.needsKeychain, path.components.count <= 2, let hidden = session.stores.hiddenItems() {
      StandardError.note(hidden.description)
    }
  }

  private func entries(_ session: TreeSession, _ path: TreePath) throws -> [TreeEntry] {
    let entries = try session.entries(at: path, control: all)
    guard recursive, try session.node(at: path).isDirectory else { return entries }
    var below: [TreeEntry] = []
    try session.entriesBelow(path) { below.append($0) }
    return below
  }

  private func opened() throws -> (TreeSession, TreePath) {
    // The names at the top are there whatever the keychain does.
    let text = path ?? "."
    let opened = try OpenedPath.position(text)
    guard opened?.components.isEmpty == true, !recursive else {
      let opened = try OpenedPath(text, .folders)
      return (opened.session, opened.path)
    }
    return (try TreeSession(atTopOf: TreePath("")) { $0.report() }, TreePath(""))
  }

  private func show(_ entries: [TreeEntry], _ session: TreeSession) throws {
    if json { return try showJSON(entries, session) }
    guard long else {
      return StandardOutput.write(entries.map { styled($0) + "\n" }.joined())
    }
    var columns = Columns()
    for entry in entries {
      let details = try entry.details(session)
      columns.add([
        Columns.Field(text: details.type, style: .dim),
        Columns.Field(text: String(details.size), isRight: true),
        Columns.Field(text: details.modified.forStandardOutput, style: .dim),
        Columns.Field(text: entry.name.forStandardOutput, style: Self.style(of: entry)),
      ])
    }
    columns.write()
  }

  private func showJSON(_ entries: [TreeEntry], _ session: TreeSession) throws {
    var list = JSONList()
    for entry in entries {
      let details = try entry.details(session)
      list.add([
        ("name", entry.name.quotedAsJSON), ("path", entry.path.string.quotedAsJSON),
        ("type", details.type.quotedAsJSON), ("size", String(details.size)),
        ("modified", details.modified.iso8601.quotedAsJSON),
      ])
    }
    list.end()
  }

  private func styled(_ entry: TreeEntry) -> String {
    let name = entry.name.forStandardOutput
    return Self.style(of: entry)?.text(name) ?? name
  }

  private static func style(of entry: TreeEntry) -> TerminalStyle? {
    entry.node.isDirectory ? .folder : entry.node.isSecret ? .secret : nil
  }
}

extension Timestamp {
  /// For a person the local time, to the minute; for a program ISO 8601 in UTC.
  fileprivate var forStandardOutput: String {
    guard StandardStream.output.isTerminal, let time = LocalTime(secondsSince1970: seconds) else {
      return iso8601
    }
    let parts = [time.month, time.day, time.hour, time.minute].map { $0 < 10 ? "0\($0)" : "\($0)" }
    return "\(time.year)-\(parts[0])-\(parts[1]) \(parts[2]):\(parts[3])"
  }
}
