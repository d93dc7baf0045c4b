import CLinux
import Glibc
public import Model
public import Store

/// Has the process of a running mount decide: it knows the rules, whom it has asked lately, and how to ask a
/// person, and it keeps the record.
///
/// For programs that open the keychain by themselves: the command, and those that use the wrappers.
public struct MountAuthenticator: Authenticator {
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
    for id in question.ids {
      switch reply(for: id, question.timeout, withdrawal) {
      case .unknown: return askFallback(question, withdrawal)
      case .approved: continue
      case .rejected: return .rejected
      case .timedOut: return .timedOut
      case .refused(let reason): return .impossible(reason)
      }
    }
    return .approved(nil)
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
  private func reply(for id: ItemID, _ timeout: Int, _ withdrawal: Withdrawal) -> PermitReply {
    for socket in DoorSocket.paths(in: folder) {
      guard let connection = DoorSocket(socket, timeout) else { continue }
      // The mount's process finds the connection closed, and asks nobody any more.
      withdrawal.whenWithdrawn { connection.shut() }
      defer { withdrawal.whenWithdrawn(nil) }
      let reply = connection.send(PermitReply.request(for: id)).flatMap(PermitReply.init)
      guard withdrawal.isWithdrawn || reply == nil || reply == .unknown else { return reply ?? .unknown }
    }
    return .unknown
  }
}

/// What the process of a mount answers to who wants an item's secret.
public enum PermitReply: Equatable, Sendable {
  case approved
  case rejected
  case timedOut
  /// It does not show the item.
  case unknown
  /// With the reason, for a person.
  case refused(String)

  /// The word that begins a request; the item's id follows.
  public static let word = "permit"

  static func request(for item: ItemID) -> String { "\(word) \(item.rawValue)\n" }

  public init(_ error: StoreError) {
    switch error {
    case .rejected: self = .rejected
    case .timedOut: self = .timedOut
    case .notFound: self = .unknown
    case .accessDenied(let reason): self = .refused(reason)
    default: self = .refused(error.message)
    }
  }

  /// nil: no answer came.
  init?(text: String) {
    switch text {
    case "": return nil
    case "approved": self = .approved
    case "rejected": self = .rejected
    case "late": self = .timedOut
    case "unknown": self = .unknown
    default: self = .refused(text)
    }
  }

  public var text: String {
    switch self {
    case .approved: "approved"
    case .rejected: "rejected"
    case .timedOut: "late"
    case .unknown: "unknown"
    case .refused(let reason): reason
    }
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
    DoorSocket.paths(in: folder).lazy.compactMap { socket in
      DoorSocket(socket, 5)?.send("\(Self.word) \(item.rawValue)\n").flatMap { $0.isEmpty ? nil : $0 }
    }.first
  }
}
