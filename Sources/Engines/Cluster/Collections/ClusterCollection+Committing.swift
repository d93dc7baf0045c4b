import ClusterRecords
import EtcdClient
import Model
import VaultRecords

extension ClusterCollection {
  /// How a commit went.
  enum Outcome {
    case made
    /// Another client was faster, and the copy shows what it has done.
    case overtaken
  }

  /// Makes a draft on the copy if that is still the version that was looked at; nil: it is not.
  func draft(
    _ plan: CollectionPlan<Content>, on version: UInt64, at time: Timestamp = .now
  ) throws(StoreError) -> CollectionDraft<Content>? {
    try state.use { (state) throws(StoreError) in
      guard let copy = state.copy, copy.version == version, state.distrust == nil, !state.isBehind else {
        return nil
      }
      let draft = try copy.draft(plan, at: time, session.keys)
      guard draft.transaction.operations.count <= ClusterFormat.mostOperations,
        draft.transaction.conditions.count <= ClusterFormat.mostOperations
      else { throw Self.tooMany }
      state.pending.insert(draft.operation)
      return draft
    }
  }

  static var tooMany: StoreError {
    .unsupported(
      reason: "a cluster takes \(ClusterFormat.mostOperations - 1) changes at once; change fewer at a time")
  }

  /// Makes a commit. Where it is not known whether it was made, the head says so: it names the last commits.
  ///
  /// - Throws: `unreachable` also where it stays unknown; `noSpace`, `tooLarge`, `readOnly`, `accessDenied`.
  func send(_ draft: CollectionDraft<Content>) throws(StoreError) -> Outcome {
    defer { state.use { _ = $0.pending.remove(draft.operation) } }
    let end = session.end
    var reason = ""
    while true {
      do throws(ClusterError) {
        let reply = try session.commit(draft.transaction)
        if reply.didSucceed { return made(draft, reply.header.revision) }
        // Of an attempt before that was made after all, the head says so.
        return try reason.isEmpty ? overtaken(reply.values.first?.first) : resolved(draft)
      } catch .outcomeUnknown(let unknown) {
        reason = unknown
        switch resolution(draft) {
        case .known(let outcome): return outcome
        case .unchanged where ContinuousClock.now < end: continue
        case .unchanged, .unknown: throw StoreError(.outcomeUnknown(unknown))
        }
      } catch {
        // The attempt before may still have been made.
        throw reason.isEmpty ? StoreError(error) : StoreError(.outcomeUnknown(reason))
      }
    }
  }

  private static var mostOwn: Int { 1000 }

  private func made(_ draft: CollectionDraft<Content>, _ revision: Int64) -> Outcome {
    state.use { state in
      guard let copy = state.copy, copy.modified < revision else { return }
      state.copy?.take(draft, revision: revision)
      if state.copy?.modified == revision {
        state.covered = max(state.covered, revision)
        // Without a watch nothing takes them away again.
        if state.own.count >= Self.mostOwn { state.own = [] }
        state.own.insert(revision)
      }
      if let copy = state.copy {
        session.seen.note(place.head, version: copy.version, copy.head.chain)
        session.noteReading(of: place.head, nil)
      }
      wake(&state)
    }
    return .made
  }

  private func overtaken(_ head: KeyValue?) throws(ClusterError) -> Outcome {
    do throws(StoreError) {
      if let head { try waitFor(head.modified) } else { try load() }
      return .overtaken
    } catch {
      // Another cluster, or another history, is not one that does not answer.
      if let refusal = session.seen.refusal { throw refusal }
      throw .unavailable(error.message)
    }
  }

  private enum Resolution {
    case known(Outcome)
    /// The head is the one that the draft was made on: the same transaction can be sent again.
    case unchanged
    case unknown
  }

  private func resolved(_ draft: CollectionDraft<Content>) throws(ClusterError) -> Outcome {
    guard case .known(let outcome) = resolution(draft) else {
      throw .outcomeUnknown("the head was changed too often")
    }
    return outcome
  }

  private func resolution(_ draft: CollectionDraft<Content>) -> Resolution {
    // The watch may have told, where no reply came.
    if isInCopy(draft) { return .known(.made) }
    do throws(StoreError) {
      try load()
      return try withCopy { copy in
        if copy.head.operations.contains(draft.operation) { return .known(.made) }
        if draft.isBased(on: copy) { return .unchanged }
        guard copy.version >= draft.version else { return .unknown }
        let isListed = copy.version - draft.version < UInt64(CollectionHead.mostOperations)
        return isListed ? .known(.overtaken) : .unknown
      }
    } catch { return isInCopy(draft) ? .known(.made) : .unknown }
  }

  private func isInCopy(_ draft: CollectionDraft<Content>) -> Bool {
    (try? lookAtCopy { $0.head.operations.contains(draft.operation) }) == true
  }
}
