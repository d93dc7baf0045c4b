public import Model

// The part of the configuration that lies in the vault: attributes of the item that keeps the rules of folders, which the
// vault authenticates with its keys, and whose absence it notices.
extension KeychainStore {
  /// The settings of Keyhole that lie in the keychain; none where it can't tell who has written them.
  ///
  /// - Throws: `locked` for a keychain that was never unlocked, and what reading it throws.
  public nonisolated func sealedConfiguration() throws(StoreError) -> [ConfigurationKey: SettingValue] {
    guard engine.authenticatesItems else { return [:] }
    var values: [ConfigurationKey: SettingValue] = [:]
    for (name, bytes) in try folderRules().item?.attributes ?? [:] {
      // A newer version may keep other ones.
      guard let key = ConfigurationKey(attribute: name) else { continue }
      values[key] = try? key.value(ofAttribute: bytes)
    }
    return values
  }

  /// Before a setting in the keychain changes to `value`; nil: it is removed. A person is asked where the new value protects
  /// less than the present one, or lies in the vault only and nothing of the key lies there.
  ///
  /// - Throws: `locked`, `invalidValue`; `unsupported` for a keychain that keeps no settings; `accessDenied` where no person
  ///   can be asked.
  public nonisolated func permission(
    toChange key: ConfigurationKey, to value: SettingValue?, by caller: Caller
  ) throws(StoreError) -> Permission {
    let change = try change(of: key, to: value)
    guard change.takesPerson, !isDecidedElsewhere else {
      return .given(Permit(item: key.permitID, for: .change))
    }
    let old = change.old == change.new ? "as the suite says" : ConfigurationKey.text(of: change.old)
    let line = "\(key.rawValue): \(old) → \(ConfigurationKey.text(of: change.new))"
    return try permission(toChange: key, ProtectionChange(lines: [line], removesProtection: true), caller)
  }

  /// The same for a process that does not say what the value is to be: a person is always asked.
  public nonisolated func permission(
    toChange key: ConfigurationKey, by caller: Caller
  ) throws(StoreError) -> Permission {
    guard engine.locking.lockState == .open else { throw .locked }
    return try permission(toChange: key, .unknown, caller)
  }

  private nonisolated func permission(
    toChange key: ConfigurationKey, _ change: ProtectionChange, _ caller: Caller
  ) throws(StoreError) -> Permission {
    let controller = try requireController()
    var subject = PermissionRequest.Subject(
      item: key.permitID, path: key.path, operation: .change, caller: caller.identity(),
      demand: consentToChange(sealed: false))
    subject.change = change
    return try controller.permission(PermissionRequest(subject, controller))
  }

  /// Changes a setting in the keychain; nil: it is removed.
  ///
  /// - Throws: `accessDenied` without the permit that it takes; `locked`, `unsupported`, `invalidValue`, `readOnly`,
  ///   `noSpace`.
  public nonisolated func configure(
    _ key: ConfigurationKey, to value: SettingValue?, _ permit: Permit?
  ) throws(StoreError) {
    let isFree = try !change(of: key, to: value).takesPerson || isDecidedElsewhere
    guard isFree || (permit?.item == key.permitID && permit?.operation == .change) else {
      throw .accessDenied(reason: "a person has to agree to a change of this setting")
    }
    try permit?.requireUnchangedCaller()
    try keepRules { $0.attributes[key.attribute] = value.map(ConfigurationKey.bytes) }
    _ = presentRetention()
    feed.publish([Change(.attributes, .keychain, origin: .local)])
  }

  /// The settings that another process changes with the item that keeps them; nil: one is removed.
  ///
  /// - Throws: `invalidValue` for what are no settings.
  public nonisolated func configurationToChange(
    to item: Item
  ) throws(StoreError) -> [(key: ConfigurationKey, value: SettingValue?)] {
    let present = try folderRules().item?.attributes ?? [:]
    var changes: [(key: ConfigurationKey, value: SettingValue?)] = []
    for name in Set(present.keys).union(item.attributes.keys)
    where ConfigurationKey.isAttribute(name) && present[name] != item.attributes[name] {
      guard let key = ConfigurationKey(attribute: name) else {
        throw .invalidValue(reason: "Keyhole has no such setting")
      }
      var value: SettingValue?
      if let bytes = item.attributes[name] { value = try key.value(ofAttribute: bytes) }
      changes.append((key, value))
    }
    return changes
  }

  private nonisolated func change(
    of key: ConfigurationKey, to value: SettingValue?
  ) throws(StoreError) -> SealedChange {
    if let value { try key.check(value) }
    guard engine.authenticatesItems else {
      throw .unsupported(
        reason:
          "only a vault keeps settings that protect less, for other programs change another keychain's items; "
          + "the mount option `\(key.rawValue)=` sets it for one mount")
    }
    guard engine.locking.lockState == .open else { throw .locked }
    let sealed = try sealedConfiguration()[key]
    let (old, new) = (sealed ?? key.fallback, value ?? key.fallback)
    // Where nothing is sealed the suite may say more than the default, which the keychain does not know.
    let comesBeforeSuite = sealed == nil && value.map(key.isForVault) ?? false
    return SealedChange(old: old, new: new, takesPerson: comesBeforeSuite || key.isWeaker(new, than: old))
  }
}

/// A change of a setting in the keychain.
private struct SealedChange {
  /// The present value, or the default.
  var old: SettingValue
  var new: SettingValue
  /// Whether a person has to agree.
  var takesPerson: Bool
}

extension ConfigurationKey {
  private static let prefix = "configuration/"

  /// Whether an attribute of the item that keeps rules is a setting.
  package static func isAttribute(_ name: ExactString) -> Bool { name.string.hasPrefix(prefix) }

  /// The attribute that keeps the setting.
  var attribute: ExactString { ExactString(Self.prefix + rawValue) }

  init?(attribute: ExactString) {
    guard Self.isAttribute(attribute) else { return nil }
    self.init(rawValue: String(attribute.string.dropFirst(Self.prefix.count)))
  }

  /// The path of the key in the tree, which also names it in a dialog.
  public var path: String { "defaults/\(SuiteConfiguration.suite.string)/\(rawValue)" }

  /// The key that a path names; nil: it is another path.
  public init?(path: String) {
    guard let key = Self.allCases.first(where: { $0.path == path }) else { return nil }
    self = key
  }

  var permitID: ItemID { ItemID(ofRules: attribute) }

  static func bytes(_ value: SettingValue) -> [UInt8] {
    Array(words(of: value).joined(separator: "\n").utf8)
  }

  fileprivate func value(ofAttribute bytes: [UInt8]) throws(StoreError) -> SettingValue {
    guard let text = ExactString(utf8: bytes) else {
      throw .invalidValue(reason: "`\(rawValue)` is \(values)")
    }
    let words = text.string.split(separator: "\n", omittingEmptySubsequences: false).map { String($0) }
    return try value(reading: words)
  }
}
