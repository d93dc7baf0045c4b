import ArgumentParser
import Model
import Service
import Store

struct FindCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "find", abstract: "Find settings and items by their names.",
    discussion: """
      Prints the paths of suites, keys, services and items whose name contains PATTERN; with * or ? in it, those whose \
      whole name fits. Upper and lower case are the same. It ends with exit code 3 where nothing fits.
      """)

  @OptionGroup var output: FoundPaths

  @Argument(help: "A part of a name, or a pattern with * and ?.")
  var pattern: String

  @Argument(help: "Where to look; without it, everywhere.", completion: .treePath)
  var path: String?

  func run() throws {
    output.quiet.apply()
    let opened = try OpenedPath(path ?? "", .folders)
    FoundPaths.readNames(for: opened)
    try output.print { body in
      try TreeSearch(opened.session).find(NamePattern(pattern), below: opened.path, body)
    }
  }
}

struct SearchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "search", abstract: "Search settings and items by path and attributes, never by values.",
    discussion: """
      Prints the paths of keys and items that every TEXT fits: their path, service, account, label or another \
      attribute contains it. NAME=TEXT looks at one attribute only, as in label=work or keyhole.access=userPresence. \
      No setting and no secret is read. It ends with exit code 3 where nothing fits.
      """)

  @OptionGroup var output: FoundPaths

  @Option(help: "Where to look; without it, everywhere.", completion: .treePath)
  var below: String?

  @Argument(help: "A text, or ATTRIBUTE=TEXT.")
  var text: [String]

  func run() throws {
    output.quiet.apply()
    let opened = try OpenedPath(below ?? "", .folders)
    FoundPaths.readNames(for: opened)
    try output.print { body in
      try TreeSearch(opened.session).search(text.map(TreeSearch.Term.init), below: opened.path, body)
    }
  }
}

/// How paths that were found are printed.
struct FoundPaths: ParsableArguments {
  @Flag(help: "A JSON array of objects: path.")
  var json = false

  @OptionGroup var quiet: QuietOption

  /// Reads the keychain's names before paths are printed: beside these a progress bar could not be shown.
  ///
  /// An error of it comes again with the search.
  static func readNames(for opened: OpenedPath) {
    guard opened.path.needsKeychain else { return }
    ProgressBar.run("reading names") { try? opened.session.stores.keychain?.load() }
  }

  /// - Throws: `Failure` where nothing was found.
  func print(_ search: ((TreePath) -> Void) throws -> Void) throws {
    var list = JSONList()
    var count = 0
    try search { path in
      count += 1
      guard json else { return StandardOutput.print(path.string.forStandardOutput) }
      list.add([("path", path.string.quotedAsJSON)])
    }
    if json { list.end() }
    guard count > 0 else { throw Failure(nil, "nothing was found", .notFound) }
  }
}
