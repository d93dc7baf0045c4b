package import ClusterRecords
package import EtcdClient
import Model
import Synchronization

/// The state of a store's cluster that this device has seen: it never goes behind that.
package final class SeenState: Sendable {
  package struct Contents: Hashable, Sendable {
    /// nil: none was seen yet.
    package var cluster: UInt64?
    package var revision: Int64 = 0
    /// The version of the head of each collection.
    package var heads: [[UInt8]: UInt64] = [:]
    /// The digest of the commits up to that version, where it is known.
    package var chains: [[UInt8]: CommitChain] = [:]

    package init() {}
  }

  private struct State {
    var contents: Contents
    /// Why nothing may be changed; nil: it may.
    var refusal: ClusterError?
    var isOfOtherCluster = false
    var isChanged = false
    /// The heads of collections that are gone.
    var gone: Set<[UInt8]> = []
  }

  private let state: Mutex<State>
  private let changed: @Sendable () -> Void

  /// `changed` is called when there is something new to be stored, and not again before `takeChanged`.
  package init(_ contents: Contents = Contents(), changed: @escaping @Sendable () -> Void = {}) {
    state = Mutex(State(contents: contents))
    self.changed = changed
  }

  package var contents: Contents { state.withLock { $0.contents } }
  var revision: Int64 { state.withLock { $0.contents.revision } }

  /// Why the cluster is not the one that was seen; nil: it is.
  package var refusal: ClusterError? { state.withLock { $0.refusal } }

  /// Whether another cluster answers than the one that was seen; else the refusal is for one that was set back.
  package var isOfOtherCluster: Bool { state.withLock { $0.isOfOtherCluster } }

  /// The contents, if they have changed since this was asked last.
  package func takeChanged() -> Contents? {
    state.withLock { state in
      guard state.isChanged else { return nil }
      state.isChanged = false
      return state.contents
    }
  }

  /// Takes what was stored, where it is more.
  func take(_ stored: Contents) {
    change { state in
      state.contents.cluster = state.contents.cluster ?? stored.cluster
      state.contents.revision = max(state.contents.revision, stored.revision)
      for (key, version) in stored.heads where version > state.contents.heads[key] ?? 0 {
        state.contents.heads[key] = version
        state.contents.chains[key] = stored.chains[key]
      }
      state.isChanged = true
    }
  }

  /// Something else has changed that is stored with the contents.
  func setChanged() { change { $0.isChanged = true } }

  /// A person has accepted that the cluster was set back, or is another one: what it has now is the state to begin with.
  package func accept() {
    change { state in
      (state.refusal, state.isOfOtherCluster) = (nil, false)
      state.contents = Contents()
      state.isChanged = true
    }
  }

  /// Checks a reply, before whose request everything up to the revision `least` was seen, and takes note of it.
  ///
  /// - Throws: `wrongCluster`.
  func check(_ header: ClusterHeader, least: Int64) throws(ClusterError) {
    let error: ClusterError? = change { state in
      if let known = state.contents.cluster, known != header.cluster {
        state.isOfOtherCluster = true
        state.refusal = .wrongCluster(
          "another cluster answers than before; `keyhole status` says more")
      } else if header.revision < least {
        state.refusal = .wrongCluster(
          "the cluster was set back behind what this device has seen; `keyhole status` says more")
      } else if state.refusal == nil {
        if state.contents.cluster != header.cluster || state.contents.revision < header.revision {
          state.isChanged = true
        }
        state.contents.cluster = header.cluster
        state.contents.revision = max(state.contents.revision, header.revision)
      }
      return state.refusal
    }
    if let error { throw error }
  }

  /// The cluster is not the one that was seen any more: nothing of it is taken from now on.
  func refuse(_ reason: String) {
    change { state in
      state.refusal = state.refusal ?? .wrongCluster("\(reason); `keyhole status` says more")
    }
  }

  /// The version of a collection's head that was seen; 0: none.
  func version(of head: [UInt8]) -> UInt64 { state.withLock { $0.contents.heads[head] ?? 0 } }

  /// Takes note of a version of a key, and of the digest of the commits up to it where it is the head of a collection.
  func note(_ head: [UInt8], version: UInt64, _ chain: CommitChain?) {
    change { state in
      guard version > state.contents.heads[head] ?? 0 else { return }
      state.contents.heads[head] = version
      state.contents.chains[head] = chain
      state.gone.remove(head)
      state.isChanged = true
    }
  }

  /// The heads of collections that this process has forgotten.
  var gone: Set<[UInt8]> { state.withLock { $0.gone } }

  /// The version of a collection's head that was seen, with the digest of the commits up to it; nil: that is not known.
  func chain(of head: [UInt8]) -> (version: UInt64, chain: CommitChain)? {
    state.withLock { state in
      guard let version = state.contents.heads[head], let chain = state.contents.chains[head] else {
        return nil
      }
      return (version, chain)
    }
  }

  /// Why a history is refused.
  enum HistoryRefusal: String {
    case isOther =
      "the cluster shows another history than this device has seen: changes that were stored are missing"
    case isUnproven =
      "the cluster does not show the commits since this device was here: they were deleted by something else than Keyhole, and nothing proves that changes which were stored are not missing"
  }

  /// The cluster shows another history than this device has seen, or may do so: nothing of it is taken from now on.
  func refuseHistory(_ reason: HistoryRefusal) -> ClusterError {
    let error = ClusterError.wrongCluster("\(reason.rawValue); `keyhole status` says more")
    change { $0.refusal = error }
    return error
  }

  /// The collection is gone.
  func forget(_ head: [UInt8]) {
    change { state in
      state.contents.chains[head] = nil
      state.gone.insert(head)
      if state.contents.heads.removeValue(forKey: head) != nil { state.isChanged = true }
    }
  }

  @discardableResult private func change<Result>(_ body: (inout State) -> Result) -> Result {
    let (result, isNew) = state.withLock { state in
      let wasChanged = state.isChanged
      let result = body(&state)
      return (result, state.isChanged && !wasChanged)
    }
    if isNew { changed() }
    return result
  }
}
