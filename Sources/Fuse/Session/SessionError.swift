public import Platform

/// A session that could not be made, mounted or run.
public struct SessionError: Error, Sendable, CustomStringConvertible {
  /// The step that failed.
  public enum Step: String, Sendable {
    case create = "starting a FUSE session"
    case mount = "mounting"
    case run = "answering the kernel"
    case unmount = "unmounting"
  }

  /// The step that failed.
  public let step: Step
  /// The message of libfuse, or the text of the error number.
  public let message: String
  /// The error number of the step: EINVAL for arguments that libfuse does not take, EBUSY for a second run.
  public let errno: Errno

  init(_ step: Step, messages: [String], errno: Errno) {
    self.step = step
    self.errno = errno
    message = messages.isEmpty ? errno.description : messages.joined(separator: "; ")
  }

  /// The step and the message, in one line.
  public var description: String { "\(step.rawValue) failed: \(message)" }
}
