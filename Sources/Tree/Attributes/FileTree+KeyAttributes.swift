import Model
import Store
import Synchronization

// The attributes of a key: its name, its type, and the layer that it comes from.
extension FileTree {
  func attributeValue(_ name: String, of place: KeyPlace) throws(StoreError) -> AttributeValue {
    switch name {
    case AttributeName.type: return .text(try type(of: place).rawValue)
    case AttributeName.name: return .text(place.key.string)
    case AttributeName.origin where settings.engine.origins != nil: return .text(try origin(of: place))
    default: throw .unsupported(reason: "a key has `user.keyhole.name` and `user.keyhole.type` only")
    }
  }

  /// The names of attributes that listxattr(2) leaves out: they are computed, and no copy is to take them along.
  public func computedAttributeNames(of node: Node) -> [String] {
    guard node.keptAttributes == nil else { return [] }
    var names: [String] = []
    if case .key(let place) = node.place, (try? origin(of: place)) != nil {
      names.append(AttributeName.origin)
    }
    if isStale(node.place) != nil { names.append(AttributeName.stale) }
    return names
  }

  /// Whether what is shown of a setting or an item may be behind its store; nil: it never is.
  func isStale(_ place: Place) -> Bool? {
    switch place {
    case .key: settings.engine.isStale
    case .item, .value: keychain?.engine.isStale
    default: nil
    }
  }

  /// The name of the attribute of an item and its secret's file that is `false` where every program gets the secret at once, from
  /// a keychain that is trusted, and `true` elsewhere.
  public static let guardedAttribute = AttributeName.guarded

  /// The item of a file, of which `user.keyhole.guarded` says whether it can be read at once; nil: it is none.
  func guardedPlace(_ place: Place) -> ItemPlace? {
    switch place {
    case .item(let item), .value(let item): item
    default: nil
    }
  }

  /// Whether opening an item for reading may be refused or wait for a person, or the keychain is not what was last stored in it.
  func isGuarded(_ place: ItemPlace) throws(StoreError) -> Bool {
    guard let keychain, let item = try storedItem(place) else { return false }
    guard case .trusted = keychain.engine.trust else { return true }
    return try keychain.mayRefuse(item)
  }

  /// Whether an attribute of a place is computed, and `true` or `false`.
  func isComputed(_ name: String, of place: Place) -> Bool {
    switch name {
    case AttributeName.stale: isStale(place) != nil
    case AttributeName.guarded: guardedPlace(place) != nil
    default: false
    }
  }

  /// Sets such an attribute: to what it may have been when it was read, so that a copy can set it.
  func setComputed(_ name: String, _ value: [UInt8]) throws(StoreError) {
    guard ["true", "false"].contains(String(decoding: value, as: UTF8.self)) else {
      throw .notPermitted(reason: "`\(name)` is computed")
    }
  }

  func type(of place: KeyPlace) throws(StoreError) -> SettingType {
    if let pending = overlay.withLock({ $0.pending[.key(place)] }) { return pending.declaredType ?? .data }
    let entry = settings.suite(place.suite).snapshot?.entries[place.key]
    guard let entry else { throw .notFound }
    return settledType(of: entry.value, at: place) ?? entry.value.type
  }

  /// The layer that a key comes from. - Throws: `noSuchAttribute` before its first content is stored.
  private func origin(of place: KeyPlace) throws(StoreError) -> String {
    guard let origin = try settings.engine.origins?.origin(of: place.key, in: place.suite) else {
      throw .noSuchAttribute
    }
    return origin
  }

  func setAttribute(
    _ name: String, _ value: [UInt8], of place: KeyPlace, _ node: Node, by caller: Caller
  ) throws(StoreError) {
    if name == AttributeName.origin, settings.engine.origins != nil {
      guard try Array(origin(of: place).utf8) == value else {
        throw .notPermitted(reason: "`\(name)` is computed; changes are written to the mount's `write-layer`")
      }
      return
    }
    guard name == AttributeName.type else { return try checkUnchanged(name, value, node) }
    guard let type = SettingType(rawValue: String(decoding: value, as: UTF8.self)) else {
      let types = SettingType.allCases.map(\.rawValue).joined(separator: ", ")
      throw .invalidValue(reason: "a type is one of \(types)")
    }
    guard !declare(type, at: place, node, by: caller) else { return }
    try convert(place, to: type)
  }

  /// Before the content is committed, the type says how it will be read.
  func declare(
    _ type: SettingType, at place: KeyPlace, _ node: Node, by caller: Caller
  ) -> Bool {
    let isPending = overlay.withLock { overlay in
      overlay.pending[.key(place)]?.declaredType = type
      return overlay.pending[.key(place)] != nil
    }
    let writers = node.state.withLock { Array($0.writers.values) }
    let isWritten = writers.filter { $0.declare(type, by: caller) }.count > 0
    return isPending || isWritten
  }

  func convert(_ place: KeyPlace, to type: SettingType) throws(StoreError) {
    try settings.suite(place.suite).update { (contents) throws(StoreError) in
      guard let setting = contents.settings[place.key] else { throw .notFound }
      if type != .string, setting.value == .data([]) {
        // Created empty, by tar before it writes: the type waits for the first content.
        return overlay.withLock { $0.emptyTypes[place] = type }
      }
      guard setting.value.type != type else { return }
      let content = try settings.codec.content(of: setting.value)
      let value = try settings.codec.value(of: content, as: type)
      contents.settings[place.key] = Setting(value, modified: setting.modified)
    }
  }
}
