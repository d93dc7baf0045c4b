package import Model
package import Store

/// A layer: suites of an engine that have names of their own among those of other layers.
///
/// The suite `app` of the layer `fleet/all` is the suite `fleet:all::app` of the engine. A layer with an engine of its own has the
/// names as they are. Among others, names of suites are shorter by the layer's.
package struct SettingLayer: Sendable {
  /// As the mount option `layers=` names it.
  package let name: String
  package let engine: any SuiteEngine
  private let prefix: String

  /// A layer among others in one engine.
  ///
  /// - Throws: `invalidName` for a name that is not one or more parts of letters, digits, `.`, `_` and `-`, with `/` between them.
  package init(_ name: String, in engine: any SuiteEngine) throws(StoreError) {
    let parts = name.split(separator: "/", omittingEmptySubsequences: false)
    guard name.utf8.count <= 128, parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(Self.isPlain) }) else {
      throw .invalidName(
        reason:
          "the name of a layer is parts of letters, digits, “.”, “_” and “-” with “/” between them, like fleet/all"
      )
    }
    (self.name, self.engine) = (name, engine)
    prefix = parts.joined(separator: ":") + "::"
  }

  /// A layer that is all suites of an engine.
  package init(_ name: String, of engine: any SuiteEngine) {
    (self.name, self.engine, prefix) = (name, engine, "")
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
      true
    default: false
    }
  }

  /// The name that a suite has in the engine.
  func stored(_ suite: ExactString) -> ExactString {
    prefix.isEmpty ? suite : ExactString(prefix + suite.string)
  }

  /// The suite of the engine that lists the suites which are removed in this layer: that of an empty name, which no suite has.
  var storedList: ExactString? { canRemoveSuites ? ExactString(prefix) : nil }

  /// Whether the layer can note that a suite is removed which a layer below has: one with an engine of its own has no name to spare.
  var canRemoveSuites: Bool { !prefix.isEmpty }

  /// The suites that are removed in this layer, although layers below may have them.
  func removedSuites() throws(StoreError) -> [ExactString] {
    guard let storedList, try engine.stamp(of: storedList) != nil else { return [] }
    return try engine.read(storedList)?.settings.keys ?? []
  }

  /// Returns whether that is a change.
  @discardableResult
  func setRemoved(_ isRemoved: Bool, _ suite: ExactString) throws(StoreError) -> Bool {
    guard let storedList, try removedSuites().contains(suite) != isRemoved else { return false }
    if isRemoved { do throws(StoreError) { _ = try engine.create(storedList) } catch .exists {} }
    let after = try engine.update(storedList, known: nil) { contents in
      contents.settings[suite] = isRemoved ? Setting(SettingLayers.tombstone) : nil
    }
    if after.settings.isEmpty {
      do throws(StoreError) { try engine.remove(storedList) } catch .notEmpty {} catch .notFound {}
    }
    return true
  }

  /// The name of the suite that the engine has under this name; nil: it is none of this layer.
  package func suite(stored: ExactString) -> ExactString? {
    guard !prefix.isEmpty else { return stored }
    let text = stored.string
    // No suite has an empty name, whatever the engine has.
    guard text.utf8.starts(with: prefix.utf8), text.utf8.count > prefix.utf8.count else { return nil }
    return ExactString(String(decoding: text.utf8.dropFirst(prefix.utf8.count), as: UTF8.self))
  }

  /// The same suites, for calls that must not wait.
  var withoutWaiting: SettingLayer { SettingLayer(name, engine.withoutWaiting, prefix) }

  private init(_ name: String, _ engine: any SuiteEngine, _ prefix: String) {
    (self.name, self.engine, self.prefix) = (name, engine, prefix)
  }
}
