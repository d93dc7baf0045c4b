import Model
import Platform

/// Warnings about rules for programs before they hold.
package enum RuleWarning {
  package static let text = "`allow` for keyhole lets in every program that can start it."

  /// Whether a text names a file that is this program, after `allow`.
  package static func allowsKeyhole(_ text: String) -> Bool {
    guard let own = FileID("/proc/self/exe") else { return false }
    let new = text.components(after: "→").replacing("rules for programs: ", with: "")
    return new.split(whereSeparator: { $0 == ";" || $0 == "\n" }).contains { line in
      let words = line.split(separator: " ", maxSplits: 1)
      guard words.count == 2, words[0] == "allow", let path = words[1].firstIndex(of: "/") else {
        return false
      }
      return FileID(String(words[1][path...])) == own
    }
  }
}

extension String {
  /// The part behind the last occurrence of a mark; all of it if there is none.
  fileprivate func components(after mark: Character) -> String {
    lastIndex(of: mark).map { String(self[index(after: $0)...]) } ?? self
  }
}
