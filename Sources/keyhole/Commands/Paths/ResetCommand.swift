import ArgumentParser
import Model
import Platform
import Prompting
import Service
import Tree

struct ResetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reset", abstract: "Show the value of the layers below again, of a key or of a whole suite.",
    discussion: """
      For settings that are made of layers (`layers=`). A key that was set here, or removed here, goes from the layer that \
      is written, and the next lower layer that has it gives its value. Of a suite, all keys that lower layers have; keys that only the layer that is \
      written has stay. Values that go are versions: `keyhole undo defaults/SUITE/KEY` sets one again. \
      Of a suite it asks on a terminal, and elsewhere changes nothing without --yes.
      """)

  @Flag(name: .shortAndLong, help: "Do not ask.")
  var yes = false

  @OptionGroup var quiet: QuietOption

  @Argument(
    help: "Keys or suites, such as defaults/my.app/color or defaults/my.app.", completion: .treePath)
  var paths: [String]

  func run() throws {
    quiet.apply()
    for text in paths {
      let opened = try OpenedPath(text, .none)
      let path = opened.path.string
      guard try opened.path.isKey || isWanted(path) else {
        throw Failure(nil, "nothing was changed", .refused)
      }
      guard let count = try opened.session.reset(opened.path) else {
        throw Failure(path, "only keys and suites below `defaults` come from layers")
      }
      StandardError.note("\(path): \(Self.result(count))".escapedForTerminal)
    }
  }

  private func isWanted(_ suite: String) throws -> Bool {
    guard !yes else { return true }
    guard StandardStream.input.isTerminal else {
      throw UsageError(
        message:
          "all keys of \(suite) that layers below have would be theirs again, and nothing was changed; --yes does it without a question"
      )
    }
    return Confirmation.isGiven("Take all keys of \(suite) that layers below have back to these")
  }

  private static func result(_ count: Int) -> String {
    switch count {
    case 0: "the layer that is written has nothing of it; nothing was changed"
    case 1: "removed from the layer that is written: 1 entry"
    default: "removed from the layer that is written: \(count) entries"
    }
  }
}
