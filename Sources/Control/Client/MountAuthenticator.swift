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
  /// The keychain through the mount, for items that only it opens; nil: no mount serves this keychain.
  private let open: @Sendable () -> (any KeychainEngine)?

  /// `runtimeFolder`: where mounts have their sockets. `fallback` is asked where no mount shows the items; its
  /// decisions go into `record`. `open` gives the keychain through the mount, where one serves it.
  public init(
    runtimeFolder: String, fallback: (any Authenticator)? = nil, record: any AccessRecord,
    open: @escaping @Sendable () -> (any KeychainEngine)? = { nil }
  ) {
    folder = runtimeFolder
    (self.fallback, self.record, self.open) = (fallback, record, open)
  }

  /// Passes the question to the mount's process and waits; without a mount the fallback decides.
  public func ask(_ question: Question, _ withdrawal: Withdrawal) -> Answer {
    ask(question, withdrawal, else: fallback?.ask ?? Self.refuse)
  }

  /// Where the fallback asks, what is typed between two tries is not shown.
  public func withTries<Value>(_ body: (_ ask: @escaping (Question, Withdrawal) -> Answer) -> Value) -> Value
  {
    guard let fallback else { return body(ask) }
    return fallback.withTries { askFallback in body { ask($0, $1, else: askFallback) } }
  }

  private func ask(
    _ question: Question, _ withdrawal: Withdrawal, else fallback: (Question, Withdrawal) -> Answer
  ) -> Answer {
    // An item's own password stays in the mount's process, which opens the item for this one.
    if question.password != .none {
      guard let engine = open() else { return askFallback(question, withdrawal, fallback) }
      guard let password = try? ItemPassword(through: engine) else {
        return .impossible(StoreError.outOfMemory.message)
      }
      return .approved(password)
    }
    for (index, id) in question.ids.enumerated() {
      let secrets = question.secrets[id] ?? .value
      // A question about rules has one path for each.
      let request: ControlMessage =
        id.isOfRules ? .permitRules(path: question.items[index]) : .permit(id, question.operation, secrets)
      do throws(StoreError) {
        guard try isPermitted(request, withdrawal) else {
          return askFallback(question, withdrawal, fallback)
        }
      } catch {
        return Answer(error)
      }
    }
    return .approved(nil)
  }

  /// The fallback's answer, which is recorded.
  private func askFallback(
    _ question: Question, _ withdrawal: Withdrawal, _ fallback: (Question, Withdrawal) -> Answer
  ) -> Answer {
    let answer = fallback(question, withdrawal)
    let now = Timestamp(seconds: Timestamp.now.seconds)
    for id in question.ids where record.takes(guarded: true) {
      let secrets = question.secrets[id] ?? .value
      record.note(AccessEvent(question.operation, id, secrets, by: question.caller, .init(answer), at: now))
    }
    return answer
  }

  /// The answer where there is no fallback.
  private static func refuse(_ question: Question, _ withdrawal: Withdrawal) -> Answer {
    .impossible("approval is required, and without a mount no prompt is available; `keyhole mount` mounts")
  }

  /// Whether the first mount that shows the item permits it; false: none shows it, or it is withdrawn.
  ///
  /// - Throws: what that mount answers; `unreachable` where one does not answer and no other shows the item.
  private func isPermitted(_ request: ControlMessage, _ withdrawal: Withdrawal) throws(StoreError) -> Bool {
    var failure: StoreError?
    for process in ControlClient.processes(in: folder) {
      do throws(StoreError) {
        let channel = try ControlClient.connect(to: process, in: folder, identified: true)
        // The mount's process finds the connection closed, and withdraws its question.
        withdrawal.whenWithdrawn { channel.shut() }
        defer { withdrawal.whenWithdrawn(nil) }
        guard channel.send(request) else { throw MessageChannel.ended }
        _ = try channel.reply()
        return true
      } catch {
        guard !withdrawal.isWithdrawn else { return false }
        switch error {
        case .notFound: continue
        // Left by a process that was killed.
        case MessageChannel.ended, ControlClient.gone: continue
        case .unreachable, .system: failure = error
        default: throw error
        }
      }
    }
    if let failure { throw failure }
    return false
  }
}

extension Answer {
  /// The answer for an error that a mount's process replied.
  fileprivate init(_ error: StoreError) {
    switch error {
    case .rejected: self = .rejected
    case .revoked: self = .revoked
    case .timedOut: self = .timedOut
    case .locked: self = .locked
    case .accessDenied(let reason): self = .impossible(reason)
    default: self = .impossible(error.message)
    }
  }
}

/// The paths that a running mount gives to items.
public struct MountNames: Sendable {
  private let folder: String

  /// `runtimeFolder`: the folder of the control sockets.
  public init(runtimeFolder: String) {
    folder = runtimeFolder
  }

  /// An item's path in the tree; nil: no mount shows it.
  public func path(of item: ItemID) -> String? {
    for process in ControlClient.processes(in: folder) {
      let reply = try? ControlClient.ask(process, in: folder, .fetchPath(item), patience: 5)
      if case .path(let path?)? = reply { return path }
    }
    return nil
  }
}
