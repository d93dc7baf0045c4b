public import Model

/// A setting of Keyhole's own: its name in the suite `keyhole`, in the vault and as a mount option.
///
/// The mount options, `keyhole config`, the checks of the suite, `keyhole doctor`, `keyhole status`, and the test of the manual
/// pages read the table of ``definition``.
public enum ConfigurationKey: String, CaseIterable, Sendable {
  case askUnlock = "ask-unlock"
  case authCommand = "auth-command"
  case authRequests = "auth-requests"
  case authReuse = "auth-reuse"
  case authTimeout = "auth-timeout"
  case autoLock = "auto-lock"
  case browsers
  case echo
  case eol
  case history
  case historyAge = "history-age"
  case plainPrograms = "plain-programs"
  case plainSession = "plain-session"
  case presenceButton = "presence-button"

  /// The values that a key takes.
  public enum Kind: Sendable {
    case bool
    /// An integer: a number of seconds, days or versions, as the unit says.
    case number(ClosedRange<Int>, Unit)
    /// A string: the absolute path of a program; empty: none.
    case program
    /// A string: one of these.
    case word([String])
    /// An array of strings: the absolute paths of programs.
    case programs
  }

  /// The unit of a number.
  public enum Unit: String, Sendable {
    case seconds
    case days
    case versions
  }

  /// The values that protect more.
  public enum Protection: Sendable {
    /// None does.
    case neutral
    /// This one does.
    case bool(Bool)
    /// A lower number does.
    case lower
    /// A higher number does.
    case higher
    /// A lower number does, and 0 does least.
    case lowerThanNever
    /// No program does.
    case none
    /// A longer list does.
    case longer
  }

  /// The properties of a key.
  public struct Definition: Sendable {
    /// The values that the key takes.
    public var kind: Kind
    /// The value where the key is set nowhere.
    public var fallback: SettingValue
    /// The values that protect more.
    public var protection: Protection
    /// Whether a change holds for mounts that are made after it; else it holds at once.
    public var takesNewMount = false
    /// Whether `-o` takes the key too.
    public var isMountOption = true
    /// The meaning of the value, as a clause.
    public var summary: String
  }

  /// The properties of the key.
  public var definition: Definition {
    switch self {
    case .askUnlock, .authRequests, .authCommand, .authReuse, .authTimeout, .presenceButton:
      definitionOfQuestion
    case .history, .historyAge: definitionOfHistory
    case .autoLock:
      Definition(
        kind: .number(0...65535, .seconds), fallback: .integer(0), protection: .lowerThanNever,
        summary: "after how many seconds without use the keychain is locked; 0: never")
    case .browsers:
      Definition(
        kind: .programs, fallback: .array([]), protection: .longer, isMountOption: false,
        summary: "further browsers of files and indexers, which get EACCES without a question")
    case .plainPrograms:
      Definition(
        kind: .programs, fallback: .array([]), protection: .none, isMountOption: false,
        summary: "programs that may have secrets of the Secret Service over the bus without encryption")
    case .echo:
      Definition(
        kind: .bool, fallback: .bool(true), protection: .neutral, takesNewMount: true,
        summary: "whether watchers of the mount get inotify events for changes from outside")
    case .plainSession:
      Definition(
        kind: .bool, fallback: .bool(false), protection: .bool(false), takesNewMount: true,
        summary: "whether a Secret Service is taken also without encryption on the bus")
    case .eol:
      Definition(
        kind: .word(["text", "exact"]), fallback: .string("text"), protection: .neutral, takesNewMount: true,
        summary: "`exact`: secrets keep the line feed that ends their only line")
    }
  }

  /// Less history is less that can be undone. That old values are there for longer opens none of them: a version opens as its
  /// item does.
  private var definitionOfHistory: Definition {
    let standard = HistoryRetention.standard
    return switch self {
    case .history:
      Definition(
        kind: .number(0...HistoryRetention.mostVersions, .versions),
        fallback: .integer(Int128(standard.versions)), protection: .higher,
        summary: "how many versions of an item, or of a key of a suite, are kept; 0: none")
    default:
      Definition(
        kind: .number(0...HistoryRetention.mostDays, .days), fallback: .integer(Int128(standard.days)),
        protection: .higher, summary: "for how many days versions and removed items are kept; 0: not at all")
    }
  }

  private var definitionOfQuestion: Definition {
    switch self {
    case .askUnlock:
      Definition(
        kind: .bool, fallback: .bool(true), protection: .bool(false),
        summary: "whether a program that opens a locked secret has its user asked for the passphrase")
    case .authCommand:
      Definition(
        kind: .program, fallback: .string(""), protection: .none,
        summary: "the program that is asked in place of a person")
    case .authRequests:
      Definition(
        kind: .bool, fallback: .bool(true), protection: .bool(false),
        summary: "whether a question that can be asked nowhere waits for `keyhole approve`")
    case .authReuse:
      Definition(
        kind: .number(0...AccessController.longestReuse, .seconds), fallback: .integer(10),
        protection: .lower,
        summary: "for how many seconds an answer holds")
    case .presenceButton:
      Definition(
        kind: .bool, fallback: .bool(false), protection: .bool(false),
        summary: "whether a yes meets `userPresence` in the place of a passphrase or a fingerprint")
    default:
      Definition(
        kind: .number(10...3600, .seconds), fallback: .integer(60), protection: .lower,
        summary: "for how many seconds a question waits for its answer")
    }
  }

  /// The value where the key is set nowhere.
  public var fallback: SettingValue { definition.fallback }
}

// MARK: - Values

extension ConfigurationKey {
  /// The values that the key takes, for a person: `an integer from 0 to 300`.
  public var values: String {
    switch definition.kind {
    case .bool: "a bool, true or false"
    case .number(let range, let unit):
      "an integer, \(range.lowerBound) to \(range.upperBound) \(unit.rawValue)"
    case .program: "a string, the path of a program that begins with `/`, or empty"
    case .word(let words): "a string, \(words.joined(separator: " or "))"
    case .programs: "an array of strings, paths of programs that begin with `/`"
    }
  }

  /// The values that lie in the vault only, for a person; nil: there are none.
  public var restriction: String? {
    switch (definition.protection, fallback) {
    case (.lower, .integer(let number)): "more than \(number) lies in the vault"
    case (.higher, .integer(let number)): "less than \(number) lies in the vault"
    case (.lowerThanNever, _): "0 lies in the vault"
    case (.none, _): "lies in the vault"
    case (.bool(let strict), .bool(let fallback)) where strict == fallback: "\(!strict) lies in the vault"
    default: nil
    }
  }

  /// The key as a mount option: `auth-reuse=SECONDS`.
  public var asMountOption: String {
    switch definition.kind {
    case .bool: rawValue + (self == .echo ? "=on|off" : "=yes|no")
    case .number(_, .versions): rawValue + "=N"
    case .number(_, let unit): rawValue + "=" + unit.rawValue.uppercased()
    case .program: rawValue + "=PROGRAM"
    case .word(let words): rawValue + "=" + words.joined(separator: "|")
    case .programs: rawValue
    }
  }

  /// - Throws: `invalidValue` for another type, or a value beyond the limits.
  public func check(_ value: SettingValue) throws(StoreError) {
    guard takes(value) else { throw .invalidValue(reason: "`\(rawValue)` is \(values)") }
  }

  private func takes(_ value: SettingValue) -> Bool {
    switch (definition.kind, value) {
    case (.bool, .bool): true
    case (.number(let range, _), .integer(let number)): Int(exactly: number).map(range.contains) ?? false
    case (.program, .string(let path)): path == "" || Self.isPath(path)
    case (.word(let words), .string(let word)): words.contains(word.string)
    case (.programs, .array(let paths)):
      paths.allSatisfy { if case .string(let path) = $0 { Self.isPath(path) } else { false } }
    default: false
    }
  }

  private static func isPath(_ path: ExactString) -> Bool {
    path.utf8.first == UInt8(ascii: "/") && !path.utf8.contains { $0 == UInt8(ascii: "\n") || $0 == 0 }
  }

  /// A value as `keyhole config` and the vault have it: one word, or of an array one for each element.
  ///
  /// - Throws: `invalidValue` for words that are no value of the key.
  public func value(reading words: [String]) throws(StoreError) -> SettingValue {
    let value: SettingValue? =
      switch (definition.kind, words.count) {
      case (.programs, _): .array(words.filter { !$0.isEmpty }.map { .string(ExactString($0)) })
      case (.bool, 1): Self.bools[words[0]].map { .bool($0) }
      case (.number, 1): Int(words[0]).map { .integer(Int128($0)) }
      case (_, 1): .string(ExactString(words[0]))
      default: nil
      }
    guard let value, takes(value) else { throw .invalidValue(reason: "`\(rawValue)` is \(values)") }
    return value
  }

  private static let bools = ["true": true, "yes": true, "false": false, "no": false]

  /// The words of a value of the key, which ``value(reading:)`` reads.
  public static func words(of value: SettingValue) -> [String] {
    switch value {
    case .bool(let isTrue): [isTrue ? "true" : "false"]
    case .integer(let number): ["\(number)"]
    case .string(let text): [text.string]
    case .array(let values):
      values.compactMap { if case .string(let text) = $0 { text.string } else { nil } }
    default: []
    }
  }

  /// A value of a key in one line for a person.
  public static func text(of value: SettingValue) -> String {
    let words = words(of: value)
    return words.isEmpty || words == [""] ? "none" : words.joined(separator: " ")
  }

  /// Whether a higher number protects more.
  var protectsMoreIfHigher: Bool { if case .higher = definition.protection { true } else { false } }

  /// Whether a value lies in the vault only: it protects less than the default, or turns off what the key is for.
  public func isForVault(_ value: SettingValue) -> Bool {
    if case .lowerThanNever = definition.protection, value == .integer(0) { return true }
    return isWeaker(value, than: fallback)
  }

  /// Whether `value` protects less than `other`. Both have passed ``check(_:)``.
  public func isWeaker(_ value: SettingValue, than other: SettingValue) -> Bool {
    guard value != other else { return false }
    switch (definition.protection, value, other) {
    case (.neutral, _, _): return false
    case (.bool(let strict), .bool(let value), _): return value != strict
    case (.lower, .integer(let value), .integer(let other)): return value > other
    case (.higher, .integer(let value), .integer(let other)): return value < other
    case (.lowerThanNever, .integer(let value), .integer(let other)):
      return other != 0 && (value == 0 || value > other)
    case (.none, .string(let program), _): return program != ""
    case (.none, .array(let value), .array(let other)): return !Set(value).isSubset(of: other)
    case (.longer, .array(let value), .array(let other)): return !Set(other).isSubset(of: value)
    default: return true
    }
  }
}
