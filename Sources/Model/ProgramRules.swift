/// The lines of `user.keyhole.programs`: which executables may open a value.
public struct ProgramRules: Hashable, Sendable {
  public enum Action: String, CaseIterable, Sendable {
    case allow
    case ask
    case deny
  }

  public struct Rule: Hashable, Sendable {
    public var action: Action
    /// SHA-256 of the executable in lower-case hexadecimal digits; nil: whatever it holds.
    public var digest: String?
    /// An absolute path; nil: every program.
    public var path: ExactString?
  }

  public var rules: [Rule]

  /// The rules of a text; where it can't be read, as another program may have written it, everybody has to ask.
  public static func rules(reading text: ExactString) -> [Rule] {
    ProgramRules(text)?.rules ?? [Rule(action: .ask)]
  }

  /// nil where a line is not `allow`, `ask` or `deny`, perhaps `sha256:` and 64 digits, and an absolute path,
  /// or where `*` is not in the last one. A path may hold blanks, but no NUL.
  public init?(_ text: ExactString) {
    let lines = text.utf8.split(separator: 0x0A, omittingEmptySubsequences: false)
    let meant = lines.last?.isEmpty == true ? lines.dropLast() : lines[...]
    rules = meant.compactMap { Rule(ExactString(utf8: $0)) }
    guard !rules.isEmpty, rules.count == meant.count else { return nil }
    guard rules.dropLast().allSatisfy({ $0.path != nil }) else { return nil }
  }
}

extension ProgramRules.Rule {
  init?(_ line: ExactString?) {
    guard let line, !line.utf8.contains(0) else { return nil }
    var words = line.string.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
    guard words.count == 2, let action = ProgramRules.Action(rawValue: String(words[0])) else { return nil }
    self.action = action
    if words[1].hasPrefix("sha256:") {
      words = words[1].dropFirst(7).split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
      guard words.count == 2, words[0].count == 64, words[0].allSatisfy(\.isHexDigit) else { return nil }
      digest = words[0].lowercased()
    }
    guard words[1] == "*" || words[1].hasPrefix("/") else { return nil }
    path = words[1] == "*" ? nil : ExactString(String(words[1]))
    guard path != nil || digest == nil else { return nil }
  }
}
