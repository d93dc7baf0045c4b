import CLinux
import Glibc
public import Model
import SecretMemory
public import Store

/// Has the process of a running mount decide: it knows the rules, whom it has asked lately, and how to ask a
/// person, and it keeps the record.
///
/// For programs that open the keychain by themselves: the command, and those that use the wrappers.
public struct MountAuthenticator: Authenticator {
  /// How long a mount's process may take to say anything, in seconds; a person may take longer.
  private static let patience = 5

  private let folder: String
  private let fallback: (any Authenticator)?
  private let record: any AccessRecord

  /// `runtimeFolder`: where mounts have their sockets. `fallback` is asked where no mount shows the items; what
  /// it says goes into `record`.
  public init(
    runtimeFolder: String, fallback: (any Authenticator)? = nil, record: any AccessRecord
  ) {
    folder = runtimeFolder
    (self.fallback, self.record) = (fallback, record)
  }

  public func ask(_ question: Question, _ withdrawal: Withdrawal) -> Answer {
    var password: ItemPassword?
    for (id, path) in zip(question.ids, question.items) {
      switch reply(to: PermitReply.line(for: id, path, question.password), question.timeout, withdrawal) {
      case .unknown: return askFallback(question, withdrawal)
      case .approved(let given): password = given
      case .rejected: return .rejected
      case .revoked: return .revoked
      case .timedOut: return .timedOut
      case .refused(let reason): return .impossible(reason)
      }
    }
    return .approved(password)
  }

  private func askFallback(_ question: Question, _ withdrawal: Withdrawal) -> Answer {
    let answer =
      fallback?.ask(question, withdrawal)
      ?? .impossible("nobody can be asked without a mount; `keyhole mount` mounts")
    let now = Timestamp(seconds: Int64(time(nil)))
    for id in question.ids where record.takes(guarded: true) {
      record.note(AccessEvent(.open, id, by: question.asker, .init(answer), at: now))
    }
    return answer
  }

  /// What the first mount says that shows the item.
  private func reply(to line: String, _ timeout: Int, _ withdrawal: Withdrawal) -> PermitReply {
    var hanging = PermitReply.unknown
    for socket in ControlConnection.paths(in: folder) {
      guard let answers = ControlConnection.answers(socket, within: Self.patience) else { continue }
      guard answers else {
        hanging = .refused("the process of the mount does not answer")
        continue
      }
      guard let connection = ControlConnection(socket, timeout) else { continue }
      // The mount's process finds the connection closed, and asks nobody any more.
      withdrawal.whenWithdrawn { connection.shut() }
      defer { withdrawal.whenWithdrawn(nil) }
      let reply = Self.reply(connection.send(line))
      if withdrawal.isWithdrawn { return .unknown }
      switch reply {
      case .none, .unknown: continue
      case let reply?: return reply
      }
    }
    return hanging
  }

  private static func reply(_ answer: consuming SecretBytes?) -> PermitReply? {
    guard let answer else { return nil }
    return PermitReply(answer)
  }
}

/// What the process of a mount answers to who wants an item's secret.
public enum PermitReply: Sendable {
  /// With the item's own password where it has one.
  case approved(ItemPassword?)
  case rejected
  case revoked
  case timedOut
  /// It does not show the item.
  case unknown
  /// With the reason, for a person.
  case refused(String)

  /// The word that begins a request for an item's secret; the item's id follows.
  public static let word = "permit"
  /// The word that begins a request for a new password of an item's own; its id, or `-`, and its path follow.
  public static let wordForNew = "choose"

  /// The word that begins a request to change the rules of a folder; its path in the tree follows.
  public static let wordForRules = "rules"

  static func line(for item: ItemID, _ path: String, _ password: Question.Password) -> String {
    let path = path.replacing("\n", with: "%0A")
    if item.isOfRules { return "\(wordForRules) \(path)" }
    guard password == .new else { return "\(word) \(item.rawValue)" }
    return "\(wordForNew) \(item.rawValue.isEmpty ? "-" : item.rawValue) \(path)"
  }

  public init(_ error: StoreError) {
    switch error {
    case .rejected: self = .rejected
    case .revoked: self = .revoked
    case .timedOut: self = .timedOut
    case .notFound: self = .unknown
    case .accessDenied(let reason): self = .refused(reason)
    default: self = .refused(error.message)
    }
  }

  private static let withPassword = Array("password\n".utf8)

  /// nil: no answer came.
  init?(_ answer: borrowing SecretBytes) {
    let password = unsafe answer.withUnsafeBytes { bytes -> ItemPassword? in
      guard unsafe bytes.starts(with: Self.withPassword) else { return nil }
      let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes.dropFirst(Self.withPassword.count))
      guard let password = unsafe try? SecretBytes(copying: rest) else { return nil }
      return ItemPassword(password)
    }
    if let password {
      self = .approved(password)
      return
    }
    switch answer.asText() {
    case "": return nil
    case "approved": self = .approved(nil)
    case "rejected": self = .rejected
    case "revoked": self = .revoked
    case "late": self = .timedOut
    case "unknown": self = .unknown
    case let reason: self = .refused(reason)
    }
  }

  /// Lends what is sent.
  public func withBytes(_ body: (UnsafeRawBufferPointer) -> Void) {
    if case .approved(let password?) = self {
      unsafe Self.withPassword.withUnsafeBytes { unsafe body($0) }
      return unsafe password.bytes.withUnsafeBytes { unsafe body($0) }
    }
    unsafe Array(text.utf8).withUnsafeBytes { unsafe body($0) }
  }

  private var text: String {
    switch self {
    case .approved: "approved"
    case .rejected: "rejected"
    case .revoked: "revoked"
    case .timedOut: "late"
    case .unknown: "unknown"
    case .refused(let reason): reason
    }
  }
}

extension SecretBytes {
  /// What is no secret.
  fileprivate borrowing func asText() -> String {
    unsafe withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
  }
}

/// What a running mount calls the items.
public struct MountNames: Sendable {
  /// The word that begins a request; the item's id follows.
  public static let word = "path"

  private let folder: String

  public init(runtimeFolder: String) {
    folder = runtimeFolder
  }

  /// An item's path in the tree; nil: no mount shows it.
  public func path(of item: ItemID) -> String? {
    for socket in ControlConnection.paths(in: folder) {
      guard let path = ControlConnection(socket, 5)?.send("\(Self.word) \(item.rawValue)") else { continue }
      if !path.isEmpty { return path.asText() }
    }
    return nil
  }
}
