public import Model
import Platform
import Synchronization

// Reading every item: of many by pages, while single ones are looked up.
extension KeychainStore {
  /// Reads every item now, so that the first use need not wait. Where another thread is reading them, waits for that.
  ///
  /// - Throws: `locked`, `damaged`, `unreachable`.
  public nonisolated func load() throws(StoreError) {
    guard !isLoaded else { return }
    if remote != nil { return try loadRemote() }
    if let loading = try beginPaging() { return try loading.wait() }
    try executor.run { () throws(StoreError) in
      guard !isLoaded else { return }
      let items = try engine.items()
      index.withLock { $0 = KeychainIndex(items) }
    }
  }

  /// Has every item read: of a keychain that reads them by pages on another thread, else now.
  ///
  /// The changes by others are published from now on, as after `load`.
  /// - Throws: as `load`; in the background, the next call of it does.
  public nonisolated func beginLoading() throws(StoreError) {
    guard !isLoaded else { return }
    if remote == nil, try beginPaging() != nil { return }
    try load()
  }

  /// Ends a reading by pages after the present page: callers that wait for it, and later readings, fail. No program needs the items
  /// of a mount that ends.
  public nonisolated func stopLoading() { isLoadingStopped.store(true, ordering: .relaxed) }

  /// Whether the items are being read by pages now: what needs all of them waits for that.
  public nonisolated var isLoading: Bool { loading.withLock { $0 != nil } }

  /// Whether an item has this service, server or label. While items are read by pages, returns with the first one.
  ///
  /// - Throws: as `load`.
  public nonisolated func hasFolder(
    _ folder: ExactString, of itemClass: ItemClass
  ) throws(StoreError) -> Bool {
    if let loading = loading.withLock({ $0 }), loading.waitForFolder(folder, of: itemClass) { return true }
    return try read { $0.hasFolder(folder, of: itemClass) }
  }

  private nonisolated func loadRemote() throws(StoreError) {
    knownLock.withLock { $0 = $0 ?? engine.locking.lockState }
    let items = try engine.items()
    executor.run { index.withLock { if $0 == nil { $0 = KeychainIndex(items) } } }
    knownLock.withLock { $0 = engine.locking.lockState }
  }

  /// nil: the engine does not read by pages.
  private nonisolated func beginPaging() throws(StoreError) -> ItemLoading? {
    try loading.withLock { present throws(StoreError) in
      if let present { return present }
      guard !isLoaded, let paging = engine.paging else { return nil }
      let loading = ItemLoading()
      // The moment from which on changes are published.
      let reading = try paging.beginReading()
      present = loading
      Background.run { self.run(loading, reading) }
      return loading
    }
  }

  private nonisolated func run(_ loading: ItemLoading, _ reading: any ItemReading) {
    var failure: StoreError?
    do throws(StoreError) { try readPages(loading, reading) } catch { failure = error }
    self.loading.withLock { $0 = nil }
    loading.finish(failure)
    CurrentProcess.returnUnusedMemory()
  }

  private nonisolated func readPages(
    _ loading: ItemLoading, _ first: any ItemReading
  ) throws(StoreError) {
    var reading: any ItemReading = first
    for _ in 0..<Self.mostReadings {
      do throws(StoreError) {
        try add(all: reading, to: loading)
        return try executor.run { () throws(StoreError) in
          let changes = try reading.finish()
          takeAll(loading, changes)
        }
      } catch {
        guard error == .interrupted else { throw error }
      }
      loading.beginAgain()
      guard let paging = engine.paging else { break }
      reading = try paging.beginReading()
    }
    // It has become another keychain meanwhile.
    try executor.run { () throws(StoreError) in
      loading.beginAgain()
      takeAll(loading, .everything(try engine.items()))
    }
  }

  /// Each takes a change of the keychain's keys while the items are read.
  private static let mostReadings = 10

  private nonisolated func add(
    all reading: any ItemReading, to loading: ItemLoading
  ) throws(StoreError) {
    while true {
      guard !isLoadingStopped.load(ordering: .relaxed) else {
        throw .unreachable(reason: "the mount ends")
      }
      let page = try reading.next()
      guard !page.isEmpty else { return }
      loading.add(page)
    }
  }

  private nonisolated func takeAll(_ loading: ItemLoading, _ changes: ExternalChanges) {
    let (all, published) = loading.takeAll(changes)
    index.withLock { $0 = all }
    feed.publish(published)
  }

  /// This process has changed an item of which the index was not read; nil: deleted it.
  nonisolated func noteUnread(_ id: ItemID, _ item: Item?) {
    loading.withLock { $0 }?.note(id, item)
  }
}
