import ArgumentParser
import Control
import Dispatch
import Model
import Notifier
import Platform
import Service
import Store

struct LogCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "log", abstract: "Print who opened which secret, and how it was decided.",
    discussion: """
      Accesses to items with access flags or rules are recorded, with --all to every item. One line an access, a tab between: time, decision, path, program and process, terminal, and the processes \
      above it; of a browser of files also the command that allows it. Decisions are allowed, approved and reused (a person agreed, or had a moment before), session and always \
      (agreed for longer), refused, never (refused by a rule), denied (by rules), browsing (a program that opens files by \
      itself), wouldWait (opened with O_NONBLOCK), listed (waits for `keyhole approve`), closed (refused too often), \
      rejected, timedOut, withdrawn, impossible (no prompt was available) and locked. No value is in it, and no command line. The newest lines are kept, some ten thousand.
      """)

  @Flag(help: "Keep running, and print accesses as they happen.")
  var follow = false

  @Flag(help: "JSON, one object a line, as accesses happen.")
  var json = false

  @Flag(help: "Stop recording accesses. This command itself is recorded.")
  var off = false

  @Flag(help: "Record accesses to items with access flags or rules, as by default.")
  var on = false

  @Flag(help: "Record accesses to every item. Opening a secret takes several times as long then.")
  var all = false

  func validate() throws {
    let switches = [off, on, all].filter { $0 }.count
    if switches > 1 || switches == 1 && (follow || json) {
      throw ValidationError("--off, --on and --all go alone")
    }
  }

  func run() throws {
    let places = try StoragePaths.current()
    let log = AccessLog(stateFolder: places.state)
    if off || on || all { return try turn(log, places) }
    let names = ItemNames(places)
    let reader = AccessLogReader(log, as: json ? .json : .columns) { names.path(of: $0) }
    guard follow else { return reader.allLines().forEach(StandardOutput.print) }
    UserFolders.make(places.state)
    let news = DispatchSemaphore(value: 0)
    let watch = FolderWatch(places.state) { _ in news.signal() }
    withExtendedLifetime(watch) {
      while true {
        reader.newLines().forEach(StandardOutput.print)
        news.wait()
      }
    }
  }

  private func turn(_ log: AccessLog, _ places: StoragePaths) throws {
    let event = AccessEvent(
      .record, nil, by: Caller.current.identity(), all ? .all : on ? .on : .off, at: .now)
    UserFolders.make(places.state)
    do { try log.note(all ? .everything : on ? .guarded : .nothing) } catch {
      throw Failure(log.path, "\(error)")
    }
    log.note(event)
  }
}
