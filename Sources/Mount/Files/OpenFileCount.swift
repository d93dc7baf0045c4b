/// How many files are open, and what is to happen when none is.
struct OpenFileCount {
  private var count = 0
  private var whenNone: (@Sendable () -> Void)?
  /// The mount point is gone; nothing more is opened.
  private(set) var isDetached = false

  mutating func add() { count += 1 }

  /// Returns what is to be called now.
  mutating func remove() -> (@Sendable () -> Void)? {
    count -= 1
    return count == 0 ? whenNone.take() : nil
  }

  /// Returns `action`, which is to be called now; nil: `remove` will return it.
  mutating func detach(_ action: @escaping @Sendable () -> Void) -> (@Sendable () -> Void)? {
    isDetached = true
    if count == 0 { return action }
    whenNone = action
    return nil
  }
}
