import Model
import Store
import Synchronization

// What a reader has: the value of the moment of its open. Where that is still the beginning of what is stored, it may
// read on, as `tail -f` does, and what it has read is the present value's, from its first byte to its last.

extension Handle {
  /// Which value the snapshot is of: another number for each other value. 0: none.
  public var version: UInt64 { state.withLock { $0.version } }

  /// Whether it reads one value, whatever is stored meanwhile.
  public var hasSnapshot: Bool { !mode.contains(.write) && scratch == nil && !node.isControl }

  /// The length of the snapshot; nil: it can't be had.
  public var snapshotSize: Int? {
    state.withLock { state in
      guard (try? load(&state)) != nil else { return nil }
      return state.content?.count
    }
  }

  /// Whether another value is stored by now than the one that the snapshot is of.
  public var isOutdated: Bool {
    let version = version
    return version != 0 && tree.presentEntry(of: node)?.version != version
  }

  /// The reader is at the end of what it has: it goes on where the value has grown.
  func readOn(_ state: inout State) {
    guard hasSnapshot else { return }
    if node.isSecret { return readOnInSecret(&state) }
    guard let entry = tree.presentEntry(of: node), entry.version != state.version else { return }
    guard let content = try? tree.settings.codec.content(of: entry.value) else { return }
    if Self.isGrown(&state, to: .plain(content)) { state.version = entry.version }
  }

  private func readOnInSecret(_ state: inout State) {
    // The size is asked first: reading a secret for every reader that comes to its end would double its cost.
    guard !node.isRemoved, tree.committedSize(of: node) > state.content?.count ?? 0 else { return }
    guard let content = try? tree.accessibleContent(of: node) else { return }
    _ = Self.isGrown(&state, to: content)
  }

  /// Takes `grown` for the snapshot where the one that is there is its beginning.
  private static func isGrown(_ state: inout State, to grown: consuming Content) -> Bool {
    guard let content = state.content.take() else { return false }
    let isGrown = content.isBeginning(of: grown)
    state.content = isGrown ? consume grown : consume content
    return isGrown
  }
}

extension Tree {
  /// Lets readers of one file read on where its value has grown since they were opened.
  ///
  /// Returns which value they read now; nil: the same as before.
  public func readOn(_ readers: [Handle]) -> UInt64? {
    guard let first = readers.first, first.isOutdated else { return nil }
    for reader in readers {
      reader.state.withLock { state in
        if (try? reader.load(&state)) != nil { reader.readOn(&state) }
      }
    }
    return first.isOutdated ? nil : first.version
  }

  /// What is stored under the name of a key; nil: nothing, or the file has lost its name.
  func presentEntry(of node: Node) -> SuiteSnapshot.Entry? {
    let (place, isRemoved) = node.state.withLock { ($0.place, $0.isRemoved) }
    guard !isRemoved, case .key(let key) = place else { return nil }
    guard overlay.withLock({ $0.pending[place] == nil }) else { return nil }
    return settings.suite(key.suite).snapshot?.entries[key.key]
  }
}
