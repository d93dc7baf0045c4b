import ArgumentParser
import Prompting

/// `--quiet`, for commands that write notes.
struct QuietOption: ParsableArguments {
  @Flag(
    name: [.customShort("q"), .customLong("quiet")], help: "Write no notes and no progress, only errors.")
  var isQuiet = false

  func apply() {
    if isQuiet { StandardError.silenceNotes() }
  }
}
