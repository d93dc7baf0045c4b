public import Model

/// Suites that are made of several layers, of which the last one that has a key gives its value.
public protocol SettingOrigins: Sendable {
  /// The layers, the lowest first.
  var layerNames: [String] { get }

  /// The layer to which changes are written.
  var writtenLayer: String { get }

  /// The layer whose value a key has; nil: no layer has the key.
  ///
  /// - Throws: as `SuiteEngine.read`.
  func origin(of key: ExactString, in suite: ExactString) throws(StoreError) -> String?

  /// Why a change of a key would not show; nil: it would.
  ///
  /// - Throws: as `SuiteEngine.read`.
  func obstacle(toChanging key: ExactString, in suite: ExactString) throws(StoreError) -> String?

  /// Removes a key of a suite from the layer that is written, or all keys that layers below show, so that these show again; keys that stand for
  /// removed ones go too. Returns how many.
  ///
  /// - Throws: `notFound`; `notPermitted` for a key that no layer below shows, or that one above has; as `SuiteEngine.update`.
  func reset(_ key: ExactString?, in suite: ExactString) throws(StoreError) -> Int
}
