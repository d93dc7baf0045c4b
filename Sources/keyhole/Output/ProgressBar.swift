import Platform
import Prompting

/// The progress of something, on a terminal; elsewhere nothing is printed.
final class ProgressBar {
  private static let width = 40

  private let total: Int
  private let isShown = StandardStream.errors.isTerminal
  private var last = -1
  private var done = 0

  init(total: Int) {
    self.total = total
  }

  /// One more of them is done.
  func advance() {
    done += 1
    show(done)
  }

  func show(_ done: Int) {
    self.done = done
    let filled = total == 0 ? Self.width : done * Self.width / total
    guard isShown, filled != last || done == total else { return }
    last = filled
    let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: Self.width - filled)
    StandardError.draw("\r[\(bar)] \(done)/\(total)")
  }

  func end() {
    guard isShown, last >= 0 else { return }
    last = -1
    StandardError.write("\n")
  }
}
