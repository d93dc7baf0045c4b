import ArgumentParser
import SecretMemory
import Service

struct MoveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mv", abstract: "Rename or move a key, an item, a suite or a service.",
    discussion: """
      Value, type, attributes, flags and rules go with it. Where TARGET is a folder that is there, the source moves into \
      it. Views and templates that refer to it follow, settings' ones while the vault is unlocked. A target that is taken is an error, and so is a move between `defaults` and `keychain`, between classes, or \
      out of a folder whose rules would no longer hold.
      """)

  @OptionGroup var quiet: QuietOption

  @OptionGroup var paths: MovedPaths

  func run() throws {
    quiet.apply()
    try paths.opened(followingInViews: true).move()
  }
}

struct CopyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cp", abstract: "Copy a key or an item, or with -r a suite or a service.",
    discussion: """
      The copy of a key has its value and type; that of an item its secrets, attributes, flags and rules, and times of \
      its own. Reading a guarded item asks as `get` does. The keys of a suite are copied at once, the items of a service one \
      after the other: where one can't be, those before it are. A target that is taken is an error, and so is a copy between \
      `defaults` and `keychain`, between classes, or out of a folder whose rules would no longer hold.
      """)

  @Flag(name: .short, help: "Copy a suite, a service or a server with all that is in it.")
  var recursive = false

  @OptionGroup var quiet: QuietOption

  @OptionGroup var paths: MovedPaths

  func run() throws {
    quiet.apply()
    allowUnlockedMemoryWithoutSwap()
    let copy = try paths.opened(recursive ? .folders : .items)
    let bar = ProgressBar(total: nil, "copying")
    defer { bar.end() }
    try copy.copy(withContent: recursive) { bar.show($0, of: $1) }
  }
}

struct MovedPaths: ParsableArguments {
  @Argument(
    help: "A path of the tree or of a mount; what is copied may have its short name.", completion: .movedPath)
  var source: String

  @Argument(help: "The new path, or a folder that is there.", completion: .fullPath)
  var target: String

  /// `shortNames`: those that the source may have. `followingInViews`: views that refer to the source are to be changed with it.
  func opened(
    _ shortNames: OpenedPath.ShortNames = .none, followingInViews followsInViews: Bool = false
  ) throws -> TreeMove {
    let source = try OpenedPath(source, shortNames)
    let target = try OpenedPath(target, .none)
    try source.requireSameSettings(as: target)
    // A session without the keychain can't move anything into it.
    var session = source.path.needsKeychain ? source.session : target.session
    // A keychain that can't be opened keeps no setting from its new name.
    if followsInViews, !session.hasKeychain {
      session =
        (try? TreeSession(silentlyFor: TreePath("views"), settingsOf: session.settingsMount)) ?? session
    }
    return try TreeMove(source.path, to: target.path, in: session)
  }
}
