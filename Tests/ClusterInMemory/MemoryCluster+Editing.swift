package import EtcdClient
import Synchronization

// The means of a cluster's operator, or of a thief of its passwords.
extension MemoryCluster {
  /// All keys with their values, in their order.
  package var contents: [KeyValue] {
    state.withLock { $0.values(KeyRange(start: [0], end: [0xFF]), at: $0.revision) }
  }

  /// The value of a key; nil: there is none.
  package func value(_ key: [UInt8]) -> KeyValue? { state.withLock { $0.value(key, at: $0.revision) } }

  /// `etcdctl put`.
  package func put(_ key: [UInt8], _ value: [UInt8]) {
    state.withLock { state in
      let next = state.revision + 1
      state.finish(next, [.put(state.put(key, value, next))])
    }
  }

  /// `etcdctl del`.
  package func delete(_ key: [UInt8]) {
    state.withLock { state in
      let next = state.revision + 1
      state.history[key, default: []].append((next, nil))
      state.finish(next, [.delete(key: key, modified: next)])
    }
  }

  /// Servers that were changed themselves: keys are as given, with versions and revisions, and watches report nothing.
  package func forge(_ values: [KeyValue], removing keys: [[UInt8]] = []) {
    state.withLock { state in
      for value in values { state.history[value.key] = [(state.oldest, value)] }
      for key in keys { state.history[key] = nil }
    }
  }

  /// `etcdctl snapshot restore` of what was there at a revision, with revisions that go on from there.
  package func restore(revision: Int64, cluster: UInt64? = nil) {
    state.withLock { state in
      state.history = state.history.mapValues { $0.filter { $0.revision <= revision } }
      state.changes.removeAll { $0.revision > revision }
      state.revision = revision
      if let cluster { state.cluster = cluster }
    }
  }

  /// Servers whose watches leave changes of a key out.
  package func hideFromWatches(_ key: [UInt8]) {
    state.withLock { state in
      for watch in state.watches { watch.hide(key) }
    }
  }

  package var revision: Int64 { state.withLock { $0.revision } }

  /// Servers that count on from there.
  package func setRevision(_ revision: Int64) { state.withLock { $0.revision = revision } }

  /// `etcdctl compact`: what was before a revision is not known any more, and watches that were behind end.
  package func compact(_ revision: Int64) {
    state.withLock { state in
      state.oldest = revision
      state.changes.removeAll { $0.revision < revision }
    }
  }

  /// Ends all watches as if they had been behind a compaction; what they have not reported yet is lost.
  package func compactWatches() {
    state.withLock { state in
      state.oldest = state.revision
      state.changes = []
      for watch in state.watches {
        watch.drop()
        watch.send(.compacted(revision: state.revision))
      }
      state.watches = []
    }
  }

  /// The alarm NOSPACE: puts are refused.
  package func setNoSpace(_ isUsedUp: Bool) { state.withLock { $0.quotaIsUsedUp = isUsedUp } }
}
