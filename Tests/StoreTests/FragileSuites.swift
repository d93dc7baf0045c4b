import Model
import Store
import StoreConformance
import Synchronization

/// Suites in memory whose files can be damaged, as another program's crash would do it.
final class FragileSuites: SuiteEngine {
  let good = MemorySuites()
  private let damage = Mutex<SuiteStamp?>(nil)
  private let endsWithReading = Mutex(false)

  var propertyLists: any PropertyListCoding { good.propertyLists }

  /// The stored suite can't be read from now on; false: it can again.
  func setDamaged(_ isDamaged: Bool) {
    damage.withLock { $0 = isDamaged ? SuiteStamp(modified: Timestamp(seconds: 99)) : nil }
  }

  /// The writer that has left the suite incomplete goes on as soon as that was read.
  func setDamagedUntilRead() {
    setDamaged(true)
    endsWithReading.withLock { $0 = true }
  }

  func stamp(of suite: ExactString) throws(StoreError) -> SuiteStamp? {
    if let stamp = damage.withLock({ $0 }) { return stamp }
    return try good.stamp(of: suite)
  }

  func read(_ suite: ExactString, since known: SuiteContents?) throws(StoreError) -> SuiteContents? {
    defer { if endsWithReading.withLock({ $0 }) { setDamaged(false) } }
    try check()
    return try good.read(suite)
  }

  func update(
    _ suite: ExactString, known: SuiteContents?,
    _ body: (inout SuiteContents) throws(StoreError) -> Void
  ) throws(StoreError) -> SuiteContents {
    try check()
    return try good.update(suite, known: known, body)
  }

  private func check() throws(StoreError) {
    if damage.withLock({ $0 != nil }) { throw .damaged(what: "s.plist") }
  }

  func suites() throws(StoreError) -> [ExactString: SuiteStamp] { try good.suites() }
  func create(_ suite: ExactString) throws(StoreError) -> SuiteContents { try good.create(suite) }
  func remove(_ suite: ExactString) throws(StoreError) { try good.remove(suite) }
  func rename(_ suite: ExactString, to name: ExactString) throws(StoreError) {
    try good.rename(suite, to: name)
  }
  func readOnlyReason(of suite: ExactString) throws(StoreError) -> String? {
    try good.readOnlyReason(of: suite)
  }

  func synchronize(_ suite: ExactString) throws(StoreError) {}
  func room() throws(StoreError) -> DiskRoom { try good.room() }
  func problems() -> [Problem] { [] }
}
