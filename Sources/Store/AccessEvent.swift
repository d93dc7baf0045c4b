public import Model

/// One line of the record: who wanted which secret, and what was decided. Never a value.
public struct AccessEvent: Sendable {
  public enum Decision: String, Sendable {
    /// The rules let the program in.
    case allowed
    /// A person was asked and agreed.
    case approved
    /// A person had agreed a moment before.
    case reused
    /// A person refused.
    case refused
    /// The rules keep the program out.
    case denied
    /// It was refused too often lately.
    case closed
    /// Wrong passphrases or passwords.
    case rejected
    case timedOut
    /// Nobody could be asked, or who asks can't be told.
    case impossible
    case locked
  }

  public var time: Timestamp
  /// The item's path in the tree.
  public var path: String
  /// nil: it can't be told.
  public var asker: Asker?
  public var decision: Decision
}

extension AccessEvent.Decision {
  init(_ answer: Answer) {
    self =
      switch answer {
      case .approved: .approved
      case .refused: .refused
      case .rejected: .rejected
      case .timedOut: .timedOut
      case .impossible: .impossible
      }
  }
}
