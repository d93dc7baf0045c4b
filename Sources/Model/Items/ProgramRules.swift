/// The lines of `user.keyhole.programs`: which executables may open a value.
public struct ProgramRules: Hashable, Sendable {
  /// The action of a rule for an open of the value: permit it, ask the user, or refuse it (EACCES).
  public enum Action: String, CaseIterable, Sendable {
    case allow
    case ask
    case deny
  }

  /// One line: what happens when one of the programs opens the value.
  public struct Rule: Hashable, Sendable {
    /// The action when the rule matches.
    public var action: Action
    /// The programs that the rule matches.
    public var subject: Subject
  }

  /// The programs that a rule is about.
  public enum Subject: Hashable, Sendable {
    /// `*`: every program; to `allow`, every one that can be identified.
    case every
    /// `unidentified`: those whose executable can't be known.
    case unidentified
    /// An absolute path, and the SHA-256 of the file in lower-case hexadecimal digits; nil: whatever it contains.
    case program(ExactString, digest: String?)
  }

  /// The lines in order.
  public var rules: [Rule]

  /// The rules of a text; where it can't be read, as another program may have written it, every program has to ask.
  public static func rules(reading text: ExactString) -> [Rule] {
    ProgramRules(text)?.rules ?? [Rule(action: .ask, subject: .every)]
  }

  /// nil where a line is not `allow`, `ask` or `deny`, and after it `unidentified`, or perhaps `sha256:` and 64 digits and
  /// an absolute path, or where `*` is not in the last one. A path may hold blanks, but no NUL.
  public init?(_ text: ExactString) {
    let lines = text.utf8.split(separator: 0x0A, omittingEmptySubsequences: false)
    let meant = lines.last?.isEmpty == true ? lines.dropLast() : lines[...]
    rules = meant.compactMap { Rule(ExactString(utf8: $0)) }
    guard !rules.isEmpty, rules.count == meant.count else { return nil }
    guard rules.dropLast().allSatisfy({ $0.subject != .every }) else { return nil }
  }
}

extension ProgramRules {
  /// Adds a rule before the others, in place of earlier ones for the same path.
  ///
  /// - Parameters:
  ///   - text: the present rules; nil: there are none.
  ///   - action: the action of the new rule.
  ///   - program: an absolute path without a line feed.
  /// - Returns: the text; nil: the present rules can't be read, or the path is none that a rule can have.
  public static func text(
    _ text: ExactString?, adding action: Action, for program: ExactString
  ) -> ExactString? {
    let line = "\(action.rawValue) \(program.string)"
    guard !program.utf8.contains(0x0A), let new = ProgramRules(ExactString(line)), new.rules.count == 1 else {
      return nil
    }
    guard let text else { return ExactString(line) }
    guard ProgramRules(text) != nil else { return nil }
    let kept = text.string.split(separator: "\n").filter { line in
      Rule(ExactString(String(line)))?.subject != .program(program, digest: nil)
    }
    return ExactString(([line] + kept.map(String.init)).joined(separator: "\n"))
  }
}

extension ProgramRules.Rule {
  init?(_ line: ExactString?) {
    guard let line, !line.utf8.contains(0) else { return nil }
    var words = line.string.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
    guard words.count == 2, let action = ProgramRules.Action(rawValue: String(words[0])) else { return nil }
    self.action = action
    var digest: String?
    if words[1].hasPrefix("sha256:") {
      words = words[1].dropFirst(7).split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
      guard words.count == 2, words[0].count == 64, words[0].allSatisfy(\.isHexDigit) else { return nil }
      digest = words[0].lowercased()
    }
    switch words[1] {
    case "*" where digest == nil: subject = .every
    case "unidentified" where digest == nil: subject = .unidentified
    case let path where path.hasPrefix("/"): subject = .program(ExactString(String(path)), digest: digest)
    default: return nil
    }
  }
}
