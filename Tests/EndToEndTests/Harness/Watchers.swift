import Testing

/// A program that prints a line for each change that it is notified of.
final class Watcher {
  let program: Program
  private(set) var lines: [String] = []

  init(_ program: Program) {
    self.program = program
  }

  deinit { program.kill() }

  /// Reads until a line has all of these words, and returns what came before it.
  func until(_ words: String..., within duration: Duration = .seconds(20)) throws -> [String] {
    var before: [String] = []
    while let line = try program.line(within: duration) {
      lines.append(line)
      if words.allSatisfy(line.contains) { return before }
      before.append(line)
    }
    throw TimedOut(what: "a line with \(words)")
  }

  /// Reads until `condition` holds.
  func until(within duration: Duration = .seconds(20), _ condition: (String) throws -> Bool) throws {
    while let line = try program.line(within: duration) {
      lines.append(line)
      if try condition(line) { return }
    }
    throw TimedOut(what: "the line that was waited for")
  }
}

extension MountedKeyhole {
  /// inotifywait on the whole mount: lines of events and path, without those of programs that only look.
  func inotify(_ path: String = "") throws -> Watcher {
    let events = "modify,close_write,create,delete,delete_self,attrib,move"
    let watcher = Watcher(
      try world.launch("exec inotifywait -m -r -e \(events) --format '%e %w%f' \"$MOUNT/\(path)\" 2>&1"))
    _ = try watcher.until("established")
    return watcher
  }

  /// Reads `.keyhole/events` from the beginning.
  func events() throws -> Watcher {
    Watcher(try world.launch("exec cat \"$MOUNT/.keyhole/events\""))
  }

  /// `keyhole watch`, once it hears.
  func watch(_ arguments: String = "--json") throws -> Watcher {
    let watcher = Watcher(try world.launch("exec keyhole watch \(arguments)"))
    // It reports changes after its first look, so changes are made until it reports one.
    var number = 0
    try System.write(self / "defaults/probe/count", "0")
    while true {
      number += 1
      try System.write(self / "defaults/probe/count", "\(number)")
      if (try? watcher.program.line(within: .milliseconds(50))) != nil { break }
    }
    try System.write(self / "defaults/probe/mark", "\(number)")
    _ = try watcher.until("probe/mark")
    try System.unlink(self / "defaults/probe/mark")
    _ = try watcher.until("probe/mark")
    return watcher
  }
}

extension World {
  /// Starts a script of the shell outside the mount.
  func launch(_ script: String) throws -> Program {
    try Program(["/bin/bash", "-c", script], environment: environment, directory: outside)
  }
}
