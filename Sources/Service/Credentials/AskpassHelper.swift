import CredentialProtocols
import Formats
import KeychainSelection
import Model
import Platform
import Prompting
import SecretMemory
import Store
import Tree

/// `keyhole credential askpass`: the program that ssh, git and sudo -A run to have a question answered.
package enum AskpassHelper {
  /// - Parameter prompt: the question, as the program gives it.
  /// - Returns: the answer with a line feed behind it; none for what is only shown or confirmed.
  /// - Throws: `Failure` where there is no answer; the program takes that for a refusal.
  package static func run(_ prompt: String) throws -> CredentialAnswer {
    switch environment("SSH_ASKPASS_PROMPT") {
    case "confirm":
      guard try ProgramQuestion.confirm(prompt) else {
        throw Failure("askpass", "a person refused", .refused)
      }
      return .none
    case "none":
      StandardError.note(prompt.escapedForTerminal)
      return .none
    default: break
    }
    let question = AskpassPrompt(prompt)
    let asker = AskerNote(prompt)
    // The same question again from the same process: what was given was wrong.
    if asker.isFirst, let answer = try stored(question) {
      return .secret(answer)
    }
    return .secret(try line(of: ProgramQuestion.answer(prompt)))
  }

  /// nil: no item is for this question.
  private static func stored(_ question: AskpassPrompt) throws -> SecretBytes? {
    if let lines = question.gitLines { return try gitAnswer(question, lines) }
    guard let identity = question.fromRoot.identity, let secret = try CredentialItems().secret(identity)
    else {
      return nil
    }
    return try reading(FileTree.path(of: identity)) { () throws(FormatError) in
      let copy = try OneLine.read(secret) { (line) throws(FormatError) in
        do throws(SecretMemoryError) { return try SecretBytes(copying: line) } catch {
          throw FormatError(error)
        }
      }
      return copy
    }.withLineFeed()
  }

  private static func gitAnswer(_ question: AskpassPrompt, _ lines: String) throws -> SecretBytes? {
    let bytes = Array(lines.utf8)
    guard
      case .secret(let answer) = try GitHelper.run(
        GitCredential.Action.get.rawValue, SecretBytes(copying: bytes.span))
    else { return nil }
    let name: GitAnswer
    if case .gitUser = question { name = .username } else { name = .password }
    return try reading("git") { () throws(FormatError) in try name.value(in: answer) }.withLineFeed()
  }

  private static func line(of answer: consuming SecretBytes) throws -> SecretBytes {
    try answer.withLineFeed()
  }
}

extension AskpassPrompt {
  /// ssh(1) names a key as it was given: a relative path (`ssh -i key`) counts from the current folder, which is ssh's.
  fileprivate var fromRoot: Self {
    guard case .passphrase(let key) = self, key.utf8.first != UInt8(ascii: "/") else { return self }
    return .passphrase(key: ExactString(Files.pathFromRoot(key.string)))
  }
}

extension SecretBytes {
  fileprivate consuming func withLineFeed() throws -> SecretBytes {
    try append([0x0A].span)
    return self
  }
}

/// A note that a process has asked a question. Its second one means that the first answer did not help: it is not given
/// again, as sudo(8) and PAM count wrong passwords.
private struct AskerNote {
  private static let prefix = "askpass."

  /// Whether the process that started this one asks for the first time.
  let isFirst: Bool

  init(_ prompt: String) {
    guard let folder = UserFolders.current()?.runtime, RuntimeFolder.make(folder) == nil,
      let parent = Caller.Identity.Process(running: CurrentProcess.parent)
    else {
      isFirst = true
      return
    }
    Self.removeEnded(in: folder)
    var hash = SHA256Hasher()
    hash.update(Array(prompt.utf8).span)
    let digest = hash.finalize().prefix(8).map { String($0, radix: 16) }.joined(separator: "-")
    let name = "\(Self.prefix)\(parent.number).\(parent.start).\(digest)"
    do throws(Errno) {
      _ = try Descriptor("\(folder)/\(name)", [.writing, .create, .exclusive])
      isFirst = true
    } catch {
      isFirst = error != .EEXIST
    }
  }

  /// Removes the notes of processes that have ended.
  private static func removeEnded(in folder: String) {
    for name in (try? Files.names(in: folder)) ?? [] where name.hasPrefix(prefix) {
      let parts = name.split(separator: ".")
      guard parts.count == 4, let number = Int32(parts[1]), let start = UInt64(parts[2]),
        !Caller.Identity.Process(number: number, start: start).isRunning
      else { continue }
      _ = try? Files.remove("\(folder)/\(name)")
    }
  }
}
