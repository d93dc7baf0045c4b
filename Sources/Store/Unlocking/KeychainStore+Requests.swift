public import Model

// Requests that wait for `keyhole approve` or `keyhole deny`: for guarded items, and for the passphrase.
extension KeychainStore {
  /// The requests that wait for an approval, the oldest first.
  public nonisolated func listedRequests() -> [ListedRequest] {
    let all = (controller?.listedRequests() ?? []) + (unlocking?.listedRequests() ?? [])
    return all.sorted { $0.number < $1.number }
  }

  /// Refuses a listed request. - Throws: `notFound` where none has this number.
  public nonisolated func deny(_ number: UInt32) throws(StoreError) {
    if let unlocking, unlocking.lists(number) { return try unlocking.deny(number) }
    guard let controller else { throw .notFound }
    try controller.deny(number)
  }

  /// Asks the person for the proof that approves a listed request; for one that waits for the passphrase, for that. It waits for
  /// the person.
  ///
  /// - Parameters:
  ///   - number: the number of the request.
  ///   - scope: how long the approval holds: `items`, `session` or `always`.
  ///   - approver: the process at whose terminal the person is asked.
  ///   - withdrawal: ends the question when the approver has gone.
  /// - Throws: `notFound` where no request has this number, or it ended meanwhile; `accessDenied`, `rejected`, `timedOut`
  ///   for an answer that approves nothing: the request waits on; `invalidValue` for a scope that it can't have.
  public nonisolated func approve(
    _ number: UInt32, _ scope: Answer.Scope, by approver: Caller.Identity, _ withdrawal: Withdrawal
  ) throws(StoreError) {
    if let unlocking, unlocking.lists(number) {
      guard scope == .items else {
        throw .invalidValue(
          reason:
            "the passphrase opens the vault for all programs until it is locked; approve it without an option"
        )
      }
      return try unlocking.approve(number, by: approver, withdrawal)
    }
    guard let controller else { throw .notFound }
    try controller.approve(number, scope, by: approver, withdrawal)
  }
}
