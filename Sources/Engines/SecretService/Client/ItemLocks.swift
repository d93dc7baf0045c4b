/// Which items this engine is changing: one change at a time each. Used by `Keyring` only.
struct ItemLocks {
  private var waiting: [String: [CheckedContinuation<Void, Never>]] = [:]
  private var adding = 0

  func isHeld(_ path: String) -> Bool { waiting[path] != nil }

  /// An item is being made, whose path is not known yet.
  var isAdding: Bool { adding > 0 }

  mutating func beginAdding() { adding += 1 }

  mutating func endAdding() { adding -= 1 }

  /// Takes an item if it is free.
  mutating func take(_ path: String) -> Bool {
    guard waiting[path] == nil else { return false }
    waiting[path] = []
    return true
  }

  mutating func wait(_ path: String, _ continuation: CheckedContinuation<Void, Never>) {
    waiting[path]?.append(continuation)
  }

  /// Hands an item to the caller that has waited longest; true: none waits.
  mutating func release(_ path: String) -> Bool {
    guard var queue = waiting[path] else { return true }
    guard !queue.isEmpty else {
      waiting[path] = nil
      return true
    }
    queue.removeFirst().resume()
    waiting[path] = queue
    return false
  }
}
