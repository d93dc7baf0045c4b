import Platform
import SecretMemory
package import Store

/// The helper's answer: a word, and what belongs to it. After a password the helper waits for a further question, until it is ended.
package enum AuthenticationReply {
  private static let wrong = "wrong"

  /// Has the helper ask again: the password was wrong.
  static func sendIsWrong(to descriptor: Int32) {
    // One that has ended must not end this process by SIGPIPE.
    Signals.withoutBrokenPipe { write(wrong + "\n", to: descriptor) }
  }

  /// Waits for the word that the last password was wrong; false: the end has come.
  package static func readIsWrong(_ descriptor: Int32) -> Bool {
    guard let line = try? SecretReader.readLine(descriptor: descriptor) else { return false }
    return line.span.text == wrong
  }

  /// Reads the reply; one that can't be read is a refusal or `impossible`.
  package static func read(_ descriptor: Int32) -> Answer {
    guard let bytes = try? SecretReader.readLine(descriptor: descriptor) else { return .refused }
    let line = bytes.span.text
    switch line {
    case "approved": return .approved(nil)
    case "approved-process": return .approved(nil, scope: .process)
    case "approved-session": return .approved(nil, scope: .session)
    case "approved-always": return .approved(nil, scope: .always)
    case "password":
      guard let password = try? SecretReader.readLine(descriptor: descriptor) else { return .refused }
      return .approved(ItemPassword(password))
    case "refused": return .refused
    case "never": return .never
    case "rejected": return .rejected
    case "revoked": return .revoked
    case "late": return .timedOut
    default: return .impossible(line.isEmpty ? "the dialog has failed" : line)
    }
  }

  /// Writes the reply, a line or two.
  package static func send(_ answer: Answer, to descriptor: Int32) {
    switch answer {
    case .approved(let password?, _):
      write("password\n", to: descriptor)
      try? password.bytes.withSpan(0..<password.bytes.count) { (bytes) throws(Errno) in
        try Files.write(bytes, to: descriptor)
      }
      write("\n", to: descriptor)
    case .approved(nil, .process): write("approved-process\n", to: descriptor)
    case .approved(nil, .session): write("approved-session\n", to: descriptor)
    case .approved(nil, .always): write("approved-always\n", to: descriptor)
    case .approved: write("approved\n", to: descriptor)
    case .refused: write("refused\n", to: descriptor)
    case .never: write("never\n", to: descriptor)
    case .rejected: write("rejected\n", to: descriptor)
    case .revoked: write("revoked\n", to: descriptor)
    case .timedOut: write("late\n", to: descriptor)
    case .locked: write("the keychain is locked\n", to: descriptor)
    case .impossible(let reason): write(reason + "\n", to: descriptor)
    }
  }

  private static func write(_ text: String, to descriptor: Int32) {
    try? Files.write(Array(text.utf8).span, to: descriptor)
  }
}
