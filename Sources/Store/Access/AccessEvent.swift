public import Model
import Synchronization

/// An operation of a program on an item, and the scope of an answer to a question.
public enum AccessOperation: String, Sendable {
  case read
  case write
  case readWrite = "read-write"
  /// Changes what protects it: access flags, rules, accessibility, its own password, the folder whose rules hold.
  case change
  /// The record of accesses itself is switched on or off.
  case record

  /// Whether an answer to this is an answer to the other. A change is asked about each time.
  func covers(_ other: AccessOperation) -> Bool {
    switch self {
    case .read, .write: self == other
    case .readWrite: other == .read || other == .write || other == .readWrite
    case .change, .record: false
    }
  }
}

/// One line of the record: who wanted which secret, and what was decided. Never a value.
public struct AccessEvent: Sendable {
  /// The operation that the program requested.
  public typealias Operation = AccessOperation

  /// The outcome, by the word that `keyhole log` prints.
  public enum Decision: String, Sendable {
    /// Nothing stood in the way: no flags, or rules that let the program in.
    case allowed
    /// A person was asked and agreed.
    case approved
    /// A person had agreed a moment before.
    case reused
    /// A person agreed for as long as the session of the program lasts.
    case session
    /// A person agreed, and had a rule written that lets the program in.
    case always
    /// A person refused.
    case refused
    /// A person refused, and had a rule written that keeps the program out.
    case never
    /// A browser of files or an indexer was refused without a question.
    case browsing
    /// The file was opened with O_NONBLOCK, so that no person was asked.
    case wouldWait
    /// It waits for `keyhole approve`, as there was nowhere to ask.
    case listed
    /// The rules keep the program out.
    case denied
    /// It was refused too often lately.
    case closed
    /// Wrong passphrases or passwords.
    case rejected
    /// Other fingers are enrolled than were when the item was stored.
    case revoked
    case timedOut
    /// The caller was gone before the answer.
    case withdrawn
    /// No prompt was available.
    case impossible
    case locked
    case off
    case on
    case all
  }

  /// When it was decided.
  public var time: Timestamp
  /// The operation that the program requested.
  public var operation: Operation
  /// By the number that the keychain gave it: its name would be readable on the disk. nil: none.
  public var item: ItemID?
  /// The view that was opened, by the number of its document; nil: the item's own file.
  public var view: ItemID?
  /// Which of the item's secrets.
  public var secrets: ItemSecrets
  /// nil: nothing is known of the process.
  public var caller: Caller.Identity?
  /// Whether the program got access, and why.
  public var decision: Decision

  /// - Parameters:
  ///   - operation: what the program wanted to do.
  ///   - item: the item, by the keychain's own name for it; nil: none.
  ///   - secrets: which of the item's secrets.
  ///   - caller: the process; nil: nothing is known of it.
  ///   - decision: the outcome.
  ///   - time: when it was decided.
  public init(
    _ operation: Operation, _ item: ItemID?, _ secrets: ItemSecrets = .value, by caller: Caller.Identity?,
    _ decision: Decision, at time: Timestamp
  ) {
    (self.time, self.operation, self.item, self.secrets) = (time, operation, item, secrets)
    (self.caller, self.decision) = (caller, decision)
  }

  /// One line of JSON. Command lines are left out: some programs are given passwords there.
  public var line: String {
    // By hand, as a program waits meanwhile: what is said of a caller is kept with its identity where that is.
    var line = "{\"time\":"
    line += AccessTime.text(of: time)
    line += ",\"operation\":\""
    line += operation.rawValue
    line += "\",\"decision\":\""
    line += decision.rawValue
    line += "\""
    line.append("item", item?.rawValue)
    line.append("view", view?.rawValue)
    line.append("secret", secrets.words)
    if let caller { line += caller.textForRecord ?? caller.madeTextForRecord }
    line += "}\n"
    return line
  }
}

/// The latest second that a line had: to make the text of one costs as much as the rest of a line.
private enum AccessTime {
  private static let latest = Mutex<(seconds: Int64, text: String)>((.min, ""))

  static func text(of time: Timestamp) -> String {
    latest.withLock { latest in
      if latest.seconds != time.seconds { latest = (time.seconds, time.iso8601.quotedAsJSON) }
      return latest.text
    }
  }
}

extension Caller.Identity {
  /// The fields of the process in a line of the record.
  var madeTextForRecord: String {
    var text = ""
    text.append("program", programName)
    if let process { text += ",\"pid\":\(process.number)" }
    text.append("script", script)
    // Without its arguments.
    text.append("starts", startedCommand?.name)
    text.append("for", helped?.text)
    if let user { text += ",\"uid\":\(user)" }
    text.append("terminal", terminal)
    return text + ",\"parents\":[\(parents.map(\.quotedAsJSON).joined(separator: ","))]"
  }
}

extension String {
  /// A further field of a JSON object, unless there is no value.
  fileprivate mutating func append(_ name: StaticString, _ value: String?) {
    guard let value else { return }
    self += ",\"\(name)\":"
    self += value.quotedAsJSON
  }
}

extension ItemSecrets {
  /// nil: the main one only.
  fileprivate var words: String? {
    switch self {
    case .otpauth: Self.otpauthName
    case .code: Self.codeName
    case [.value, .otpauth]: "value,\(Self.otpauthName)"
    default: nil
    }
  }
}

/// Where accesses are noted. It is called while a caller waits, so it must be quick.
public protocol AccessRecord: Sendable {
  /// Whether it takes accesses at the moment: to items with flags or rules (`guarded`), or to the others.
  /// To tell who asks costs ten times as much as a secret.
  func takes(guarded: Bool) -> Bool

  /// Adds a line to the record. A failure does not stop the access.
  func note(_ event: AccessEvent)
}

extension AccessEvent.Decision {
  /// The decision that follows from the answer to a question.
  public init(_ answer: Answer) {
    self =
      switch answer {
      case .approved(_, .session): .session
      case .approved(_, .always): .always
      case .approved: .approved
      case .refused: .refused
      case .never: .never
      case .rejected: .rejected
      case .revoked: .revoked
      case .timedOut: .timedOut
      case .locked: .locked
      case .impossible: .impossible
      }
  }
}
