import ArgumentParser
import Model
import Platform
import Prompting
import Service

struct RemoveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rm", abstract: "Remove keys and items, or with -r folders and all that is in them.",
    discussion: """
      Where more than one key or item would go, it asks on a terminal, and elsewhere removes nothing without --yes or \
      -f. A folder of the tree itself, as `keychain`, stays and is emptied: that is always asked about, and takes \
      --yes where no person can be asked. Short names are not taken.

      Removed items and keys are kept for a while (30 days, ten versions, unless `keyhole config history` and `history-age` say \
      otherwise; in a Secret Service nothing is kept): `keyhole history` lists them, `keyhole undo PATH` brings one back. \
      Of many, some hundreds go in one transaction: where the command is interrupted, the rest stays.
      """)

  @Flag(name: .short, help: "Remove folders with everything in them.")
  var recursive = false

  @Flag(help: "Do not ask.")
  var yes = false

  @Flag(
    name: .short,
    help: "Do not ask, unless a folder of the tree itself would be emptied; a missing path is no error.")
  var force = false

  @Flag(help: "Keep nothing of it, and delete its earlier versions: no `keyhole undo` brings it back.")
  var purge = false

  @OptionGroup var quiet: QuietOption

  @Argument(help: "Paths of the tree or of a mount.", completion: .fullPath)
  var paths: [String]

  func run() throws {
    quiet.apply()
    let removals = try ProgressBar.run("reading names") { try allRemovals() }
    let count = removals.reduce(0) { $0 + $1.count }
    guard try isWanted(removals, count) else {
      throw Failure(nil, "nothing was removed", .refused)
    }
    let bar = ProgressBar(total: count, "removing")
    defer { bar.end() }
    let isSaying = StandardStream.errors.isTerminal && StandardError.showsNotes
    for removal in removals {
      let notice = purge || isSaying ? RemovalNotice(removal.session, removal.path) : nil
      if purge { try notice?.switchOff() }
      try removal.run { count in
        bar.advance(count)
        if purge { notice?.renew() }
      }
      if purge, let line = try notice?.purge() {
        bar.end()
        StandardError.note(line.escapedForTerminal)
      }
      if !purge, isSaying, let line = notice?.line {
        bar.end()
        StandardError.note(line.escapedForTerminal)
      }
    }
  }

  /// All in one session: each would read all names.
  private func allRemovals() throws -> [TreeRemoval] {
    try paths.reduce(into: []) { removals, path in
      let session = removals.last { $0.session.hasKeychain }?.session
      if let removal = try removal(path, in: session) { removals.append(removal) }
    }
  }

  private func removal(_ text: String, in session: TreeSession?) throws -> TreeRemoval? {
    do {
      let opened = try OpenedPath(text, .none, in: session)
      return try TreeRemoval(of: opened.path, recursive ? .withContent : .fileOrItem, in: opened.session)
    } catch let failure as Failure where force && failure.kind == .notFound {
      return nil
    }
  }

  /// Whether it is so little that no question is needed, or the person agrees.
  private func isWanted(_ removals: [TreeRemoval], _ count: Int) throws -> Bool {
    let emptied = removals.first(where: \.isOfTree)
    guard !yes, count > 1 && !force || emptied != nil && count > 0 else { return true }
    let things = count == 1 ? "1 key or item" : "\(count) keys and items"
    let place = removals.count == 1 ? " of \(removals[0].path.string)" : ""
    guard StandardStream.input.isTerminal else {
      throw UsageError(
        message: "\(things)\(place) would go, and nothing was removed; --yes removes them without a question")
    }
    return Confirmation.isGiven("Remove \(things)\(place)")
  }
}
