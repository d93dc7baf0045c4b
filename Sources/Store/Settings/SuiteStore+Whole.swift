import Model
import Platform

// The suite as a whole. A change and its announcement are one step on the queue: a refresh in between
// would take it for a change from outside.
extension SuiteStore {
  /// Makes the suite. - Throws: `exists`, `readOnly`, `noSpace`.
  nonisolated func create() throws(StoreError) {
    try executor.run { () throws(StoreError) in
      let contents = try engine.create(name)
      assumeIsolated { store in
        store.feed.publish([Change(.created, .suite(store.name), origin: .local)])
        _ = store.publish(contents, moving: nil, origin: .local)
      }
    }
  }

  /// Removes the suite. - Throws: `notEmpty`, `notFound`, `readOnly`.
  nonisolated func remove() throws(StoreError) {
    try withoutLock { () throws(StoreError) in
      try impatientEngine.remove(name)
      assumeIsolated { $0.withdraw(origin: .local) }
    }
  }

  /// Gives the suite the name of another that is not there. - Throws: `exists`, `notFound`, `readOnly`.
  nonisolated func rename(to other: SuiteStore) throws(StoreError) {
    if other.name == SuiteConfiguration.suite, let contents = try engine.read(name) {
      try SuiteConfiguration.check(contents)
    }
    // Always in one order: two renames must not wait for each other.
    let (first, second) = name < other.name ? (self, other) : (other, self)
    try withoutLock(on: first.executor) { () throws(StoreError) in
      try second.executor.run { () throws(StoreError) in
        try impatientEngine.rename(name, to: other.name)
        let contents = assumeIsolated { $0.reset() }
        let moved = (try? contents ?? engine.read(other.name)) ?? nil
        if let moved { other.assumeIsolated { _ = $0.show(moved) } }
        feed.publish([Change(.moved, .suite(other.name), previous: .suite(name), origin: .local)])
      }
    }
  }
}
