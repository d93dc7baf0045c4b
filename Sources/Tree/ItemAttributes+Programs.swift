internal import Model

/// The lines of `user.keyhole.programs`: which executables may open a value.
enum ProgramRules {
  private static let words = ["allow", "ask", "deny"]

  /// The rules as they are kept, which is as they were written.
  ///
  /// - Throws: `invalidValue` where a line is not a word and an absolute path, or `*` is not in the last one.
  static func checked(_ value: [UInt8]) throws(StoreError) -> ExactString {
    guard let rules = ExactString(utf8: value), isWellFormed(rules.string) else {
      throw .invalidValue(reason: "not lines of allow PATH, ask PATH or deny PATH, with * in the last only")
    }
    return rules
  }

  private static func isWellFormed(_ text: String) -> Bool {
    let lines = text.utf8.split(separator: 0x0A, omittingEmptySubsequences: false)
    let rules = lines.last?.isEmpty == true ? lines.dropLast() : lines[...]
    guard !rules.isEmpty else { return false }
    return rules.allSatisfy { path(of: $0) != nil } && !rules.dropLast().contains { path(of: $0) == "*" }
  }

  /// nil: the line is no rule. A path may hold blanks, but no NUL.
  private static func path(of line: Substring.UTF8View) -> ExactString? {
    guard let blank = line.firstIndex(of: 0x20), !line.contains(0) else { return nil }
    guard words.contains(where: { line[..<blank].elementsEqual($0.utf8) }) else { return nil }
    let path = ExactString(utf8: line[line.index(after: blank)...])
    return path.flatMap { $0 == "*" || $0.utf8.first == UInt8(ascii: "/") ? $0 : nil }
  }
}
