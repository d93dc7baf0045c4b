import Notifier

/// A replay as a line: a letter, a blank, and the path in the tree.
enum ReplayLine {
  static func text(of replay: Replay<some ReplayTarget>) -> String {
    "\(letter(replay.kind, isDirectory: replay.target.isDirectory)) \(replay.target.path)\n"
  }

  private static func letter(_ kind: ReplayKind, isDirectory: Bool) -> Character {
    switch kind {
    case .deletion: isDirectory ? "D" : "d"
    case .creation: isDirectory ? "C" : "c"
    case .modification: "m"
    case .attributes: isDirectory ? "A" : "a"
    }
  }
}
