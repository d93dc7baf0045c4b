/// Words that are near to one that does not exist.
package enum Spelling {
  /// The word with the fewest typing errors; nil: none is near. A third of the word's characters may be wrong, two at most for
  /// each eight.
  package static func nearest(to word: String, among words: [String]) -> String? {
    let limit = max(1, min(word.count / 3, 3))
    let (wanted, plain) = (Array(word.lowercased()), word.lowercased())
    let near = words.compactMap { candidate -> (word: String, distance: Int)? in
      let text = candidate.lowercased()
      guard abs(text.count - wanted.count) <= limit else { return nil }
      let distance = text == plain ? 0 : distance(wanted, Array(text))
      return distance <= limit ? (candidate, distance) : nil
    }
    return near.min { ($0.distance, $0.word) < ($1.distance, $1.word) }?.word
  }

  /// `did you mean A or B?`; nil: there is nothing to name.
  package static func question(_ words: [String]) -> String? {
    words.isEmpty ? nil : "did you mean \(words.joined(separator: " or "))?"
  }

  /// The optimal string alignment distance: insertions, deletions, replacements, and exchanges of neighbours.
  static func distance(_ left: [Character], _ right: [Character]) -> Int {
    guard !left.isEmpty, !right.isEmpty else { return max(left.count, right.count) }
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for row in 1...left.count {
      var current = [row]
      for column in 1...right.count {
        let cost = left[row - 1] == right[column - 1] ? 0 : 1
        var best = min(last[column] + 1, current[column - 1] + 1, last[column - 1] + cost)
        if row > 1, column > 1, left[row - 1] == right[column - 2], left[row - 2] == right[column - 1] {
          best = min(best, beforeLast[column - 2] + 1)
        }
        current.append(best)
      }
      beforeLast = last
      last = current
    }
    return last[right.count]
  }
}
