public import Model
public import Store
import Synchronization

extension Handle {
  /// fallocate(2) with mode 0: what lies between the end and `end` becomes zero bytes.
  ///
  /// - Throws: `tooLarge`.
  public func extend(to end: Int, by caller: Caller) throws(StoreError) {
    let size = uncommittedSize(for: caller) ?? scratch?.size ?? tree.committedSize(of: node)
    if end > size { try truncate(to: end, by: caller) }
  }

  /// Whether a close has anything to do; then it may wait for a disk.
  public var isDirty: Bool {
    state.withLock { hasUncommitted($0) || $0.fate.error != nil }
  }
}
