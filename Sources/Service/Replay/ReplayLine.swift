import Tree

/// A replay as a line: a letter, a blank, and the path in the tree.
enum ReplayLine {
  static func text(of replay: Replay) -> String {
    "\(letter(replay.kind, isDirectory: replay.isDirectory)) \(replay.path)\n"
  }

  private static func letter(_ kind: Replay.Kind, isDirectory: Bool) -> Character {
    switch kind {
    case .deletion: isDirectory ? "D" : "d"
    case .creation: isDirectory ? "C" : "c"
    case .modification: "m"
    case .attributes: isDirectory ? "A" : "a"
    }
  }
}
