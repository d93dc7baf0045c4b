import Model
import Platform
import SecretMemory
import Synchronization

/// Requests of one process for which no person is asked until `keyhole approve` names them.
struct ListedUnlock {
  let number: UInt32
  var requests: [UnlockRequest]
  let reason: String
  /// When the last of them ends, by the controller's clock.
  var end: UInt64
  /// `keyhole approve` is asking.
  var isBeingAsked = false
  /// The last request that was not approved in time. The entry stays for as long as its processes are not asked again.
  var expired: UnlockRequest?

  /// The request that it is described by.
  var shown: UnlockRequest? { requests.first ?? expired }
}

extension UnlockController {
  /// So many processes may wait.
  static let mostListed = 64

  /// The result of a listing.
  struct Listing {
    /// The requests that wait from now on.
    var requests: [UnlockRequest] = []
    /// The entries that were made for them.
    var new: [ListedUnlock] = []
    /// There was no room for these.
    var refused: [UnlockRequest] = []
    var reason: String
  }

  /// The requests that wait for an approval, the oldest first.
  public func listedRequests() -> [ListedRequest] {
    let time = now()
    return state.withLock { $0.listed }.compactMap { describe($0, at: time) }
  }

  /// nil: no request waits any more.
  private func describe(_ entry: ListedUnlock, at time: UInt64) -> ListedRequest? {
    guard let first = entry.shown?.subject else { return nil }
    var paths: [String] = []
    for path in (entry.requests + (entry.expired.map { [$0] } ?? [])).map(\.subject.path)
    where !paths.contains(path) { paths.append(path) }
    return ListedRequest(
      number: entry.number, paths: paths, purpose: .unlock, caller: first.caller, reason: entry.reason,
      secondsLeft: Int(clamping: entry.end > time ? entry.end - time : 0))
  }

  /// Whether a request has this number.
  func lists(_ number: UInt32) -> Bool {
    state.withLock { state in state.listed.contains { $0.number == number } }
  }

  /// Lists the requests of the question that is open, of which no dialog could be shown.
  func listQuestion(because reason: String, _ options: Options) {
    let time = now()
    let listing = state.withLock { state in
      let requests = state.question.take()?.requests ?? []
      return state.list(requests, because: reason, at: time, options, numbers)
    }
    follow(listing, options)
  }

  /// Outside of the lock: has requests end in time, and reports new ones.
  func follow(_ listing: Listing, _ options: Options) {
    for request in listing.refused { request.finish(.stillLocked(reason: listing.reason)) }
    for request in listing.requests {
      request.noteListing()
      deadlines.run(after: .seconds(options.timeout)) { [weak self, weak request] in
        guard let self, let request else { return }
        expire(request)
      }
    }
    let time = now()
    for request in listing.new.compactMap({ describe($0, at: time) }) { options.onListed?(request) }
  }

  /// A request was not approved in time: its tree is not asked for a while, and the entry stays in the list as long.
  private func expire(_ request: UnlockRequest) {
    let time = now()
    let number = state.withLock { state -> UInt32? in
      guard let index = state.listed.firstIndex(where: { $0.requests.contains { $0 === request } }) else {
        return nil
      }
      state.listed[index].requests.removeAll { $0 === request }
      state.listed[index].expired = request
      state.listed[index].end = max(state.listed[index].end, time + Self.quietSeconds)
      return state.listed[index].number
    }
    guard let number else { return }
    let reason = "it was not approved in time"
    keepQuiet(request.subject, reason, isCounted: false)
    request.finish(.stillLocked(reason: reason))
    deadlines.run(after: .seconds(Int(Self.quietSeconds))) { [weak self] in
      self?.state.withLock { state in
        state.listed.removeAll {
          $0.number == number && $0.requests.isEmpty && !$0.isBeingAsked && $0.expired === request
        }
      }
    }
  }

  /// Refuses a listed request, as a refusal in a dialog does. - Throws: `notFound` where none has this number.
  func deny(_ number: UInt32) throws(StoreError) {
    let entry = state.withLock { state -> ListedUnlock? in
      guard let index = state.listed.firstIndex(where: { $0.number == number }) else { return nil }
      return state.listed.remove(at: index)
    }
    guard let entry else { throw .notFound }
    let reason = "a person refused"
    if let subject = entry.shown?.subject { keepQuiet(subject, reason) }
    for request in entry.requests { request.finish(.stillLocked(reason: reason)) }
  }

  /// Asks the person for the passphrase because of a listed request. The keychain is unlocked then, and every request goes on.
  ///
  /// It waits for the person.
  /// - Parameters:
  ///   - number: the number of the request.
  ///   - approver: the process at whose terminal the person is asked.
  ///   - withdrawal: ends the question when the approver has gone.
  /// - Throws: `notFound` where no request has this number; `accessDenied` for an answer that unlocks nothing: the request waits on.
  func approve(
    _ number: UInt32, by approver: Caller.Identity, _ withdrawal: Withdrawal
  ) throws(StoreError) {
    let request = try begin(number)
    defer { endAsking(number) }
    switch ask(
      request.subject, { (passphrase) throws(StoreError) in try request.unlock(passphrase) }, withdrawal,
      approver: approver)
    {
    case .unlocked: didUnlock()
    case .refused(let reason), .impossible(let reason), .failed(let reason):
      throw .accessDenied(reason: "\(reason); the request still waits")
    }
  }

  private func begin(_ number: UInt32) throws(StoreError) -> UnlockRequest {
    let outcome = state.withLock { state -> Swift.Result<UnlockRequest, StoreError> in
      guard let index = state.listed.firstIndex(where: { $0.number == number }),
        let request = state.listed[index].shown
      else { return .failure(.notFound) }
      guard !state.listed[index].isBeingAsked else {
        return .failure(.notPermitted(reason: "another `keyhole approve` asks about it"))
      }
      state.listed[index].isBeingAsked = true
      return .success(request)
    }
    return try outcome.get()
  }

  private func endAsking(_ number: UInt32) {
    let time = now()
    state.withLock { state in
      guard let index = state.listed.firstIndex(where: { $0.number == number }) else { return }
      state.listed[index].isBeingAsked = false
      let isOver = state.listed[index].requests.isEmpty && state.listed[index].end <= time
      if isOver { state.listed.remove(at: index) }
    }
  }
}

extension UnlockController.State {
  /// Has requests wait for an approval, those of one process as one entry.
  mutating func list(
    _ requests: [UnlockRequest], because reason: String, at time: UInt64, _ options: UnlockController.Options,
    _ numbers: RequestNumbers
  ) -> UnlockController.Listing {
    var listing = UnlockController.Listing(reason: reason)
    let end = time + UInt64(clamping: options.timeout)
    for request in requests {
      if let index = listed.firstIndex(where: { $0.isOfProcess(of: request) }) {
        listed[index].requests.append(request)
        listed[index].end = end
      } else if hasRoom() {
        let entry = ListedUnlock(number: numbers.next(), requests: [request], reason: reason, end: end)
        listed.append(entry)
        listing.new.append(entry)
      } else {
        listing.refused.append(request)
        continue
      }
      listing.requests.append(request)
    }
    return listing
  }

  /// Entries for which no process waits any more give way to others.
  private mutating func hasRoom() -> Bool {
    if listed.count >= UnlockController.mostListed,
      let index = listed.firstIndex(where: { $0.requests.isEmpty && !$0.isBeingAsked })
    {
      listed.remove(at: index)
    }
    return listed.count < UnlockController.mostListed
  }

  /// An entry without a request is dropped, unless its time was over.
  mutating func unlist(_ request: UnlockRequest) {
    for index in listed.indices { listed[index].requests.removeAll { $0 === request } }
    listed.removeAll { $0.requests.isEmpty && $0.expired == nil }
  }
}

extension ListedUnlock {
  fileprivate func isOfProcess(of request: UnlockRequest) -> Bool {
    guard let process = request.subject.caller.process else { return false }
    return shown?.subject.caller.process == process
  }
}
