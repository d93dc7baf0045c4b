import ArgumentParser
import Model
import Platform
import Prompting
import SecretMemory
import Service
import Store

struct HistoryCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "history", abstract: "List earlier versions of a secret or setting, also of a removed one.",
    discussion: """
      One line a version, the oldest first, a tab between: its number, when it was replaced, and what the change was: \
      value, otpauth, attributes, protection, removed. No value is printed: it is the file \
      .keyhole/history/PATH/NUMBER on a mount, which opens as the item does. For a folder, the paths below it of which \
      something is kept. A program that changes a setting all the time makes one version a second.
      """)

  @Flag(
    help:
      "Delete the versions, so that nothing of them is left in the files. The item or setting itself stays.")
  var purge = false

  @Flag(help: "With --purge: those of all items and settings, and all removed items.")
  var all = false

  @Flag(help: "A JSON array of objects: number, replaced, changes and size; of a folder: path.")
  var json = false

  @OptionGroup var quiet: QuietOption

  @Argument(
    help: "An item, such as keychain/generic/my.service/peter, a key, or a folder.", completion: .treePath)
  var path: String?

  func validate() throws {
    if all, !purge || path != nil { throw ValidationError("--all goes with --purge, and without a path") }
    if purge, !all, path == nil { throw ValidationError("--purge takes a path, or --all") }
  }

  func run() throws {
    quiet.apply()
    let opened = try OpenedPath(path ?? "", .items)
    let (session, path) = (opened.session, opened.path)
    if purge {
      let values = try all ? [] : session.settingValues(at: path)
      let count = try ProgressBar.run("deleting versions") {
        try all ? session.purgeAll() : session.purge(path)
      }
      if count == 0, !all { try session.requireKnown(path) }
      report(count)
      if let line = session.noteOnFormerNames(having: values) { StandardError.note(line.escapedForTerminal) }
      return
    }
    session.stores.keychain?.pruneVersions()
    guard path.isInItem || path.isKey || path.view != nil else {
      let paths = try ProgressBar.run("reading versions") { try session.pathsWithHistory(below: path) }
      if paths.isEmpty { try session.requireKnown(path) }
      if path.components.isEmpty, !session.keepsItems {
        StandardError.note("this keychain keeps no earlier versions; the vault and a store in a cluster do")
      }
      guard json else { return paths.forEach { StandardOutput.print($0.forStandardOutput) } }
      return JSONList.print(paths) { [("path", $0.quotedAsJSON)] }
    }
    let versions = try session.versions(at: path)
    if versions.isEmpty { try session.requireKnown(path) }
    guard json else { return versions.forEach { StandardOutput.print($0.columns) } }
    JSONList.print(versions, \.fields)
  }

  private func report(_ count: Int) {
    StandardOutput.print(count == 1 ? "deleted 1 version" : "deleted \(count) versions")
  }
}

struct UndoCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "undo", abstract: "Make a secret or setting what it was, or bring a removed one back.",
    discussion: """
      The value and the attributes are those of the newest version, or of the one with NUMBER; the item stays at \
      least as well protected as it is, and as it was. What it is now becomes a version: a second undo takes the \
      first one back. A folder has no versions of its own: `keyhole undo FOLDER` brings back all that was removed from it, and \
      asks where that is more than one key or item; `keyhole history FOLDER` lists what is kept below it.
      """)

  @Flag(name: .shortAndLong, help: "Do not ask.")
  var yes = false

  @Flag(name: .shortAndLong, help: "Print no confirmation, and write no notes.")
  var quiet = false

  @Argument(
    help: "An item, such as keychain/generic/my.service/peter, a key, or a folder.", completion: .treePath)
  var path: String

  @Argument(help: "The number of a version, as `keyhole history` lists it; without it, the newest.")
  var number: UInt64?

  func run() throws {
    if quiet { StandardError.silenceNotes() }
    allowUnlockedMemoryWithoutSwap()
    let opened = try OpenedPath(path, .items)
    if number == nil, !TreeSession.hasVersions(opened.path) {
      let removed = try ProgressBar.run("reading versions") {
        try opened.session.removed(below: opened.path)
      }
      if !removed.isEmpty { return try restore(removed, of: opened) }
    }
    let (version, isChange) = try opened.session.restore(opened.path, number)
    guard isChange else {
      return StandardError.note(
        "\(opened.path.string) is as version \(version.number) has it; nothing was changed")
    }
    guard !quiet else { return }
    StandardOutput.print("restored version \(version.number), which was replaced \(version.replaced.iso8601)")
  }

  /// Brings back all that was removed from a folder.
  private func restore(_ removed: RemovedEntries, of opened: OpenedPath) throws {
    let things = removed.count == 1 ? "1 key or item" : "\(removed.count) keys and items"
    guard try isWanted(things, removed.count, opened.path) else {
      throw Failure(nil, "nothing was restored", .refused)
    }
    let bar = ProgressBar(total: removed.count, "restoring")
    defer { bar.end() }
    try opened.session.bringBack(removed) { bar.show($0, of: removed.count) }
    bar.end()
    if !quiet { StandardOutput.print("restored \(things)") }
  }

  private func isWanted(_ things: String, _ count: Int, _ folder: TreePath) throws -> Bool {
    guard !yes, count > 1 else { return true }
    guard StandardStream.input.isTerminal else {
      throw UsageError(
        message:
          "\(things) of \(folder.string) would come back, and nothing was restored; --yes restores them without a question"
      )
    }
    return Confirmation.isGiven("Restore \(things) of \(folder.string)")
  }
}

extension VersionEntry {
  fileprivate var columns: String {
    "\(number)\t\(replaced.iso8601)\t\(changes.words.joined(separator: ","))"
  }

  /// Of a JSON object.
  fileprivate var fields: [(name: String, value: String)] {
    [
      ("number", "\(number)"), ("replaced", replaced.iso8601.quotedAsJSON), ("changes", changes.words.json),
      ("size", "\(size)"),
    ]
  }
}
