public import Model
import Platform
public import Store

extension PropertyListFolder: SingleKeySuites {
  /// Itself.
  public var singleKeys: (any SingleKeySuites)? { self }

  /// Files that are large enough for a journal are searched for the key; smaller ones are read whole.
  public func only(_ key: ExactString, of suite: ExactString) -> any SuiteEngine {
    SingleKey(folder: self, suite: suite, key: key)
  }
}

/// A folder of suites for a caller that uses one key of one suite (`SingleKeySuites`).
///
/// Where the one key is not enough, the suite is read whole, and never from earlier contents on: those of this engine lack
/// keys, which a fold would lose.
struct SingleKey: SuiteEngine {
  let folder: PropertyListFolder
  let suite: ExactString
  let key: ExactString

  var propertyLists: any PropertyListCoding { folder.propertyLists }
  var history: (any VersionedSuites)? { folder.history }
  var withoutWaiting: any SuiteEngine {
    guard let folder = folder.withoutWaiting as? PropertyListFolder else { return folder.withoutWaiting }
    return SingleKey(folder: folder, suite: suite, key: key)
  }

  func read(_ suite: ExactString, since known: SuiteContents?) throws(StoreError) -> SuiteContents? {
    guard suite == self.suite else { return try folder.read(suite, since: known) }
    if let contents = try folder.contents(of: suite, only: key) { return contents }
    return try folder.read(suite, since: nil)
  }

  func update(
    _ suite: ExactString, known: SuiteContents?,
    _ body: (inout SuiteContents) throws(StoreError) -> Void
  ) throws(StoreError) -> SuiteContents {
    guard suite == self.suite else { return try folder.update(suite, known: known, body) }
    if let contents = try folder.update(suite, only: key, body) { return contents }
    return try folder.update(suite, known: nil, body)
  }

  func suites() throws(StoreError) -> [ExactString: SuiteStamp] { try folder.suites() }
  func stamp(of suite: ExactString) throws(StoreError) -> SuiteStamp? { try folder.stamp(of: suite) }
  func readOnlyReason(of suite: ExactString) throws(StoreError) -> String? {
    try folder.readOnlyReason(of: suite)
  }
  func create(_ suite: ExactString) throws(StoreError) -> SuiteContents { try folder.create(suite) }
  func remove(_ suite: ExactString) throws(StoreError) { try folder.remove(suite) }
  func rename(_ suite: ExactString, to name: ExactString) throws(StoreError) {
    try folder.rename(suite, to: name)
  }
  func synchronize(_ suite: ExactString) throws(StoreError) { try folder.synchronize(suite) }
  func room() throws(StoreError) -> DiskRoom { try folder.room() }
  func problems() -> [Problem] { folder.problems() }
  func waitForLock(of suite: ExactString) throws(StoreError) { try folder.waitForLock(of: suite) }
}
