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
    /// The devices of a cluster on which it holds; nil: it names none.
    public var host: Host?

    /// - Parameters:
    ///   - action: the action when the rule matches.
    ///   - subject: the programs that it matches.
    ///   - host: the devices on which it holds; nil: it names none.
    public init(action: Action, subject: Subject, host: Host? = nil) {
      (self.action, self.subject, self.host) = (action, subject, host)
    }
  }

  /// The devices of a cluster on which a rule holds: a path may be another program on each.
  public enum Host: Hashable, Sendable {
    /// `host:*`
    case all
    /// `host:NUMBER`, the number as `keyhole cluster members` prints it.
    case device(ExactString)

    /// The word in a rule.
    var text: String {
      switch self {
      case .all: "host:*"
      case .device(let number): "host:\(number.string)"
      }
    }
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

  /// nil where a line is not `allow`, `ask` or `deny`, perhaps `host:` and a number or `*`, and then `unidentified`, or perhaps
  /// `sha256:` and 64 digits and an absolute path, or where `*` for all programs is not in the last one, unless it is for one device. A path
  /// may hold blanks, but no NUL.
  public init?(_ text: ExactString) {
    let lines = text.utf8.split(separator: 0x0A, omittingEmptySubsequences: false)
    let meant = lines.last?.isEmpty == true ? lines.dropLast() : lines[...]
    rules = meant.compactMap { Rule(ExactString(utf8: $0)) }
    guard !rules.isEmpty, rules.count == meant.count else { return nil }
    guard rules.dropLast().allSatisfy({ $0.subject != .every || $0.isOfOneDevice }) else { return nil }
  }
}

extension ProgramRules {
  /// Adds a rule before the others, in place of earlier ones for the same path and host; one for all hosts in place of those for any.
  ///
  /// - Parameters:
  ///   - text: the present rules; nil: there are none.
  ///   - action: the action of the new rule.
  ///   - program: an absolute path without a line feed.
  ///   - host: the devices on which it is to hold; nil in a keychain that is no cluster's.
  /// - Returns: the text; nil: the present rules can't be read, or the path is none that a rule can have.
  public static func text(
    _ text: ExactString?, adding action: Action, for program: ExactString, on host: Host? = nil
  ) -> ExactString? {
    let line = [action.rawValue, host?.text, program.string].compactMap { $0 }.joined(separator: " ")
    guard !program.utf8.contains(0x0A), let new = ProgramRules(ExactString(line)), new.rules.count == 1 else {
      return nil
    }
    guard let text else { return ExactString(line) }
    guard ProgramRules(text) != nil else { return nil }
    let kept = text.string.split(separator: "\n").filter { line in
      guard let rule = Rule(ExactString(String(line))) else { return true }
      return rule.subject != .program(program, digest: nil) || (host != .all && rule.host != host)
    }
    return ExactString(([line] + kept.map(String.init)).joined(separator: "\n"))
  }

  /// Converts rules for another keychain of this machine: in a cluster's they name this device, elsewhere they do not. Those of other
  /// devices stay.
  ///
  /// - Parameters:
  ///   - text: the rules; what can't be read stays as it is.
  ///   - source: the number of this device in the keychain that they are from; nil: it is no cluster's.
  ///   - target: the same of the keychain that they are for.
  /// - Returns: the converted text.
  public static func text(
    _ text: ExactString, from source: ExactString?, to target: ExactString?
  ) -> ExactString {
    guard source != target, ProgramRules(text) != nil else { return text }
    let lines = text.string.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      guard let rule = Rule(ExactString(String(line))) else { return String(line) }
      return rule.line(String(line), from: source, to: target)
    }
    return ExactString(lines.joined(separator: "\n"))
  }
}

extension ProgramRules.Rule {
  /// Looks up the action of the rule on a machine, before programs are compared.
  ///
  /// Where it is not known whether the rule is meant for this machine, an `allow` is a question: in a cluster, of a path without
  /// a host; elsewhere, a device.
  ///
  /// - Parameter host: the number of this device in the cluster; nil: the keychain is no cluster's.
  /// - Returns: the action; nil: the rule is one for other devices.
  public func action(on host: ExactString?) -> ProgramRules.Action? {
    switch (self.host, host) {
    case (.device(let number)?, let own?): number == own ? action : nil
    case (.device?, nil): action == .allow ? .ask : action
    case (nil, .some) where namesProgram: action == .allow ? .ask : action
    default: action
    }
  }

  /// Whether it is meant for one device of a cluster.
  public var isOfOneDevice: Bool { if case .device? = host { true } else { false } }

  private var namesProgram: Bool { if case .program = subject { true } else { false } }

  fileprivate func line(_ line: String, from source: ExactString?, to target: ExactString?) -> String {
    let words = line.split(separator: " ", maxSplits: 1).map(String.init)
    switch (host, target) {
    case (nil, let target?) where namesProgram:
      return "\(words[0]) \(ProgramRules.Host.device(target).text) \(words[1])"
    case (let host?, nil) where host == .all || source.map(ProgramRules.Host.device) == host:
      return "\(words[0]) \(words[1].dropFirst(host.text.count + 1))"
    default: return line
    }
  }
}

extension ProgramRules.Rule {
  init?(_ line: ExactString?) {
    guard let line, !line.utf8.contains(0) else { return nil }
    var words = line.string.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
    guard words.count == 2, let action = ProgramRules.Action(rawValue: String(words[0])) else { return nil }
    self.action = action
    if words[1].hasPrefix("host:") {
      words = words[1].dropFirst(5).split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
      guard words.count == 2, !words[0].isEmpty else { return nil }
      host = words[0] == "*" ? .all : .device(ExactString(String(words[0])))
    }
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
