import Model
import Store

extension TreeSession {
  /// Has the layers below the one that is written show again: of a key, or of all keys of a suite that they have. Returns how many keys went from the
  /// layer that is written; nil: the path is none of a key or a suite.
  ///
  /// - Throws: `Failure` where the settings are not made of layers, or the value would be lost.
  package func reset(_ path: TreePath) throws -> Int? {
    guard path.components.first == "defaults", (2...3).contains(path.components.count) else { return nil }
    let suite = try name(path, 1)
    let key = path.isKey ? try name(path, 2) : nil
    return try attempt(path) { () throws(StoreError) in try settings.reset(key, in: suite) }
  }
}
