public import Model
import Store
import Synchronization

// The snapshot of a reader: the value of the moment of its open. Where that is still the beginning of the stored value,
// it may read on, as `tail -f` does, and all that it has read is the present value's, from its first byte to its last.

extension Handle {
  /// Which value the snapshot is of: another number for each other value. 0: none.
  public var version: UInt64 { state.withLock { $0.version } }

  /// Whether it reads one value, whatever is stored meanwhile.
  public var hasSnapshot: Bool { !mode.contains(.write) && scratch == nil && !node.isControl }

  /// The length of the snapshot; nil: it can't be had.
  public var snapshotSize: Int? {
    try? withBase { state in state.draft.count(stored: 0) }
  }

  /// Whether another value is stored by now than the one that the snapshot is of.
  public var isOutdated: Bool {
    let version = version
    return version != 0 && tree.presentEntry(of: node)?.version != version
  }

  /// Whether a read at `offset` may have to ask the store, which may take some seconds where another process keeps it.
  public func asksStore(readingAt offset: Int) -> Bool {
    guard node.isSecret, scratch == nil else { return false }
    if node.isCode { return offset == 0 && isEnded }
    let (lacksBase, count) = state.withLock { ($0.draft.lacksBase, $0.draft.count(stored: 0)) }
    if lacksBase { return true }
    return hasSnapshot && offset >= count && !node.isRemoved && tree.committedSize(of: node) > count
  }

  /// A reader at the end of what it has goes on where the value has grown.
  public func readOn(from offset: Int) throws(StoreError) {
    guard hasSnapshot else { return }
    guard !node.isCode else { return offset == 0 && isEnded ? try renewCode() : () }
    let count = try withBase { state in state.draft.count(stored: 0) }
    guard offset >= count else { return }
    if node.isSecret { readOnInSecret(count) } else { readOnInSetting() }
  }

  fileprivate func readOnInSetting() {
    guard let entry = tree.presentEntry(of: node), entry.version != version else { return }
    guard let content = try? tree.settings.codec.content(of: entry.value) else { return }
    state.withLock { state in
      if state.draft.grow(to: .plain(content)) { state.version = entry.version }
    }
  }

  private func readOnInSecret(_ count: Int) {
    // The size is asked first: reading a secret for every reader that comes to its end would double its cost.
    guard !node.isRemoved, tree.committedSize(of: node) > count else { return }
    guard let content = try? tree.accessibleContent(of: node) else { return }
    state.withLock { state in
      if !state.fate.isSealed { _ = state.draft.grow(to: content) }
    }
  }
}

extension FileTree {
  /// Lets readers of one file read on where its value has grown since they were opened.
  ///
  /// Returns which value they read now; nil: the same as before.
  public func readOn(_ readers: [Handle]) -> UInt64? {
    guard let first = readers.first, first.isOutdated else { return nil }
    for reader in readers where reader.hasSnapshot && !reader.node.isSecret {
      if (try? reader.loadBase()) != nil { reader.readOnInSetting() }
    }
    return first.isOutdated ? nil : first.version
  }

  /// The number of the value that is stored under the name of a key; nil: none, or the file has lost its name.
  public func storedVersion(of node: Node) -> UInt64? { presentEntry(of: node)?.version }

  /// The entry under the name of a key; nil: none, or the file has lost its name.
  func presentEntry(of node: Node) -> SuiteSnapshot.Entry? {
    let (place, isRemoved) = node.state.withLock { ($0.place, $0.isRemoved) }
    guard !isRemoved, case .key(let key) = place else { return nil }
    guard overlay.withLock({ $0.pending[place] == nil }) else { return nil }
    return settings.suite(key.suite).snapshot?.entries[key.key]
  }
}
