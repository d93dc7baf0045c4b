public import Model
public import Store
import Synchronization

/// setxattr(2)'s XATTR_CREATE and XATTR_REPLACE.
public enum AttributeCondition: Sendable {
  case always
  case mustBeMissing
  case mustExist
}

extension FileTree {
  /// The names that listxattr(2) gives, complete: `user.keyhole.type`.
  public func attributeNames(of node: Node) throws(StoreError) -> [String] {
    if let kept = node.keptAttributes { return kept.keys.filter { $0 != AttributeName.name }.sorted() }
    return switch node.place {
    case .key: [AttributeName.type]
    case .item(let item), .value(let item): try itemAttributeNames(item)
    case .scratch(let scratch):
      try file(scratch).state.withLock { $0.attributes.keys.sorted() }
    case .folder, .keychain: try rules(at: node.place) == nil ? [] : [AttributeName.programs]
    default: []
    }
  }

  /// getxattr(2). - Throws: `noSuchAttribute`; `unsupported` for names that nothing here can have.
  public func attribute(_ name: String, of node: Node) throws(StoreError) -> [UInt8] {
    try requireUserName(name)
    if let kept = node.keptAttributes {
      guard let value = kept[name] else { throw .noSuchAttribute }
      return value
    }
    switch node.place {
    case .key(let key): return try attribute(name, of: key)
    case .item(let item), .value(let item): return try attribute(name, of: item)
    case .scratch(let scratch):
      guard let value = try file(scratch).state.withLock({ $0.attributes[name] }) else {
        throw .noSuchAttribute
      }
      return value
    case .folder where name == AttributeName.programs, .keychain where name == AttributeName.programs:
      guard let rules = try rules(at: node.place) else { throw .noSuchAttribute }
      return Array(rules.utf8)
    case .suite(let suite): return try nameAttribute(name, suite)
    case .folder(let folder): return try nameAttribute(name, plainFolder(folder) ?? "")
    default: throw .unsupported(reason: "nothing here has attributes")
    }
  }

  /// setxattr(2).
  ///
  /// - Throws: `exists`, `noSuchAttribute` as the condition demands; `invalidValue`, `notPermitted` for
  ///   another identity, `unsupported`, `readOnly`, `noSpace`.
  public func setAttribute(
    _ name: String, to value: [UInt8], of node: Node, if condition: AttributeCondition,
    by caller: Caller, _ permit: Permit? = nil
  ) throws(StoreError) {
    try requireUserName(name)
    try check(condition, name, node)
    if node.keptAttributes != nil { return node.state.withLock { $0.lastAttributes?[name] = value } }
    switch node.place {
    case .key(let key): try setAttribute(name, value, of: key, node, by: caller)
    case .item(let item), .value(let item): try setAttribute(name, value, of: item, permit)
    case .scratch(let scratch): try file(scratch).state.withLock { $0.attributes[name] = value }
    case .folder where name == AttributeName.programs, .keychain where name == AttributeName.programs:
      try setRules(ProgramRules.checked(value), at: node.place, permit)
    case .suite, .folder: try checkUnchanged(name, value, node)
    default: throw .unsupported(reason: "nothing here has attributes")
    }
  }

  /// removexattr(2). What is identity or computed stays, and that is no error: rsync tries it.
  ///
  /// - Throws: `noSuchAttribute`, `unsupported`, `readOnly`.
  public func removeAttribute(
    _ name: String, of node: Node, _ permit: Permit? = nil
  ) throws(StoreError) {
    try requireUserName(name)
    guard node.keptAttributes == nil else {
      let removed = node.state.withLock { $0.lastAttributes?.removeValue(forKey: name) }
      guard removed != nil else { throw .noSuchAttribute }
      return
    }
    switch node.place {
    case .item(let item), .value(let item): try removeAttribute(name, of: item, permit)
    case .scratch(let scratch):
      let removed = try file(scratch).state.withLock { $0.attributes.removeValue(forKey: name) }
      guard removed != nil else { throw .noSuchAttribute }
    case .folder where name == AttributeName.programs, .keychain where name == AttributeName.programs:
      guard try rules(at: node.place) != nil else { throw .noSuchAttribute }
      try setRules(nil, at: node.place, permit)
    default: _ = try attribute(name, of: node)
    }
  }

  private func requireUserName(_ name: String) throws(StoreError) {
    guard name.hasPrefix("user.") else { throw .unsupported(reason: "only names below `user.` are kept") }
    guard name.utf8.count > 5 else { throw .invalidValue(reason: "an attribute needs a name after `user.`") }
  }

  private func check(
    _ condition: AttributeCondition, _ name: String, _ node: Node
  ) throws(StoreError) {
    guard condition != .always else { return }
    var exists = true
    do { _ = try attribute(name, of: node) } catch {
      guard error == .noSuchAttribute else { throw error }
      exists = false
    }
    if exists, condition == .mustBeMissing { throw .exists }
    if !exists, condition == .mustExist { throw .noSuchAttribute }
  }

  private func file(_ place: ScratchPlace) throws(StoreError) -> ScratchFile {
    guard let file = overlay.withLock({ $0[place] }) else { throw .notFound }
    return file
  }

  private func nameAttribute(_ name: String, _ plain: ExactString) throws(StoreError) -> [UInt8] {
    guard name == AttributeName.name else { throw .unsupported(reason: "a directory has its name only") }
    return Array(plain.utf8)
  }

  private func checkUnchanged(
    _ name: String, _ value: [UInt8], _ node: Node
  ) throws(StoreError) {
    guard try attribute(name, of: node) == value else {
      throw .notPermitted(reason: "`\(name)` is the name; use mv")
    }
  }
}

enum AttributeName {
  static let name = "user.keyhole.name"
  static let programs = "user.keyhole.programs"
  static let type = "user.keyhole.type"

  /// Whether it says who may have the secret.
  static func isRule(_ name: String) -> Bool {
    name == "user.keyhole.access" || name == programs
  }

  /// Whether it decides how well the secret is kept.
  static func isProtection(_ name: String) -> Bool {
    isRule(name) || name == "user.keyhole.accessible" || name == "user.keyhole.sealed"
  }
}

// MARK: Rules of folders

extension FileTree {
  /// nil: no rules can be here.
  func ruleScope(at place: Place) throws(StoreError) -> RuleScope? {
    switch place {
    case .keychain: return .keychain
    case .folder(let folder):
      guard let name = try plainFolder(folder) else { throw .notFound }
      return .folder(folder.itemClass, name)
    default: return nil
    }
  }

  /// The scope of rules at a path; nil: no rules can be there.
  public func ruleScope(at path: [String]) throws(StoreError) -> RuleScope? {
    var node = root
    for component in path { node = try child(of: node, named: component.utf8) }
    return try ruleScope(at: node.place)
  }

  private func rules(at place: Place) throws(StoreError) -> ExactString? {
    guard let keychain, let scope = try ruleScope(at: place) else { return nil }
    // A keychain that was never unlocked has no attributes, and listing those of its folder must not fail.
    guard keychain.engine.locking.lockState != .sealed else { return nil }
    return try keychain.read { $0.rules(of: scope) }
  }

  private func setRules(_ rules: ExactString?, at place: Place, _ permit: Permit?) throws(StoreError) {
    guard let scope = try ruleScope(at: place), try self.rules(at: place) != rules else { return }
    try requireKeychain().setRules(rules, of: scope, permit)
  }
}

// MARK: Keys

extension FileTree {
  private func attribute(_ name: String, of place: KeyPlace) throws(StoreError) -> [UInt8] {
    switch name {
    case AttributeName.name: return Array(place.key.utf8)
    case AttributeName.type: return Array(try type(of: place).rawValue.utf8)
    default: throw .unsupported(reason: "a key has `user.keyhole.name` and `user.keyhole.type` only")
    }
  }

  private func type(of place: KeyPlace) throws(StoreError) -> SettingType {
    if let pending = overlay.withLock({ $0.pending[.key(place)] }) { return pending.declaredType ?? .data }
    let entry = settings.suite(place.suite).snapshot?.entries[place.key]
    guard let entry else { throw .notFound }
    return settledType(of: entry.value, at: place) ?? entry.value.type
  }

  private func setAttribute(
    _ name: String, _ value: [UInt8], of place: KeyPlace, _ node: Node, by caller: Caller
  ) throws(StoreError) {
    guard name == AttributeName.type else { return try checkUnchanged(name, value, node) }
    guard let type = SettingType(rawValue: String(decoding: value, as: UTF8.self)) else {
      let types = SettingType.allCases.map(\.rawValue).joined(separator: ", ")
      throw .invalidValue(reason: "a type is one of \(types)")
    }
    guard !declare(type, at: place, node, by: caller) else { return }
    try convert(place, to: type)
  }

  /// Before the content is committed, the type says how it will be read.
  private func declare(
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

  private func convert(_ place: KeyPlace, to type: SettingType) throws(StoreError) {
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

// MARK: Items

extension FileTree {
  private func itemAttributeNames(_ place: ItemPlace) throws(StoreError) -> [String] {
    guard let staged = stagedItem(place) else { return ItemAttributes.names(of: try anyItem(place)) }
    return Set(ItemAttributes.names(of: staged.item)).union(staged.extra.keys).sorted()
  }

  private func attribute(_ name: String, of place: ItemPlace) throws(StoreError) -> [UInt8] {
    if let extra = stagedItem(place)?.extra[name] { return extra }
    return try ItemAttributes.value(name, of: try anyItem(place))
  }

  private func setAttribute(
    _ name: String, _ value: [UInt8], of place: ItemPlace, _ permit: Permit?
  ) throws(StoreError) {
    var trial = try anyItem(place)
    if AttributeName.isRule(name) { try apply(name, value, to: &trial) }
    let enrolled = trial.attributes[FingerprintEnrollment.attribute]
    if stagedItem(place) != nil {
      return overlay.withLock { overlay in
        overlay.stagedItems[place]?.set(name, to: value)
        overlay.stagedItems[place]?.item.attributes[FingerprintEnrollment.attribute] = enrolled
      }
    }
    try requireKeychain().update([trial.id], permit) { (item) throws(StoreError) in
      try ItemAttributes.set(name, to: value, on: &item)
      if AttributeName.isRule(name) { item.attributes[FingerprintEnrollment.attribute] = enrolled }
    }
  }

  /// Applies an attribute that waited for a commit: one that the item can't have is left out, but for rules, whose
  /// user relies on them.
  func applyAtCommit(_ name: String, _ value: [UInt8], to item: inout Item) throws(StoreError) {
    do throws(StoreError) {
      try apply(name, value, to: &item)
    } catch {
      if AttributeName.isRule(name) { throw error }
    }
  }

  /// Sets an attribute. A flag that nothing would hold, or that can't be met, must not be accepted.
  func apply(_ name: String, _ value: [UInt8], to item: inout Item) throws(StoreError) {
    let before = item.access
    try ItemAttributes.set(name, to: value, on: &item)
    guard item.access != before else { return }
    try requireSupport(for: item.access)
    item.attributes[FingerprintEnrollment.attribute] = try FingerprintEnrollment.note(
      for: item.access, options.enrolledFingers)
  }

  /// - Throws: `unsupported` for a password where nothing would hold it, and for flags that can't be met here.
  func requireSupport(for access: AccessFlags) throws(StoreError) {
    let keychain = try requireKeychain()
    guard !access.needsPassword || keychain.engine.passwords != nil else {
      throw .unsupported(reason: "this keychain can't seal an item with a password of its own")
    }
    try access.requireSatisfiable(with: options.factors(keychain))
  }

  private func removeAttribute(_ name: String, of place: ItemPlace, _ permit: Permit?) throws(StoreError) {
    if stagedItem(place) != nil {
      return try overlay.withLock { (overlay) throws(StoreError) in
        try overlay.stagedItems[place]?.remove(name)
      }
    }
    let item = try anyItem(place)
    // An attribute that can't be removed must not cost a transaction either: rsync tries it on every copy.
    var trial = item
    try ItemAttributes.remove(name, from: &trial)
    guard trial != item else { return }
    try requireKeychain().update([item.id], permit) { (item) throws(StoreError) in
      try ItemAttributes.remove(name, from: &item)
    }
  }
}

extension StagedItem {
  /// A staged item takes every attribute; what an item can't have is dropped at the commit.
  fileprivate mutating func set(_ name: String, to value: [UInt8]) {
    do {
      try ItemAttributes.set(name, to: value, on: &item)
      extra[name] = nil
    } catch {
      extra[name] = value
    }
  }

  fileprivate mutating func remove(_ name: String) throws(StoreError) {
    guard extra.removeValue(forKey: name) == nil else { return }
    try ItemAttributes.remove(name, from: &item)
  }
}
