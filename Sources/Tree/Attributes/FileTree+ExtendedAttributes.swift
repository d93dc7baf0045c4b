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
    case .history(let place): try itemOfVersion(place).map(ItemAttributes.names) ?? []
    case .view(.file(let folder, let name)): try attributeNames(ofView: name, in: folder)
    case .scratch(let scratch):
      try file(scratch).state.withLock { $0.attributes.keys.sorted() }
    case .folder, .keychain: try rules(at: node.place) == nil ? [] : [AttributeName.programs]
    case .suite(let suite):
      settings.engine.history?.keepsVersions(of: suite) == false ? [KeyholeAttribute.history.name] : []
    default: []
    }
  }

  /// getxattr(2). - Throws: `noSuchAttribute`; `unsupported` for names that nothing here can have.
  public func attribute(_ name: String, of node: Node) throws(StoreError) -> [UInt8] {
    try attributeValue(name, of: node).array
  }

  /// The same, without a copy of a text.
  public func attributeValue(_ name: String, of node: Node) throws(StoreError) -> AttributeValue {
    try requireUserName(name)
    let (place, kept) = node.placeAndKeptAttributes
    if let kept {
      guard let value = kept[name] else { throw .noSuchAttribute }
      return .bytes(value)
    }
    if name == AttributeName.stale, let isStale = isStale(place) { return .text("\(isStale)") }
    if name == AttributeName.guarded, let item = guardedPlace(place) {
      return .text("\(try isGuarded(item))")
    }
    switch place {
    case .key(let key): return try attributeValue(name, of: key)
    case .item(let item), .value(let item): return try attributeValue(name, of: item)
    case .history(let place):
      guard let item = try itemOfVersion(place) else { throw .noSuchAttribute }
      return try ItemAttributes.attribute(name, of: item)
    case .view(.file(_, let view)): return .text(try attribute(name, ofView: view))
    case .scratch(let scratch):
      guard let value = try file(scratch).state.withLock({ $0.attributes[name] }) else {
        throw .noSuchAttribute
      }
      return .bytes(value)
    case .folder where name == AttributeName.programs, .keychain where name == AttributeName.programs:
      guard let rules = try rules(at: place) else { throw .noSuchAttribute }
      return .text(rules.string)
    case .suite(let suite) where name == KeyholeAttribute.history.name:
      guard settings.engine.history?.keepsVersions(of: suite) == false else { throw .noSuchAttribute }
      return .text("0")
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
    if isComputed(name, of: node.place) { return try setComputed(name, value) }
    switch node.place {
    case .key(let key): try setAttribute(name, value, of: key, node, by: caller)
    case .item(let item), .value(let item): try setAttribute(name, value, of: item, permit)
    case .view(.file(_, let view)): try setAttribute(name, value, ofView: view)
    case .scratch(let scratch): try file(scratch).state.withLock { $0.attributes[name] = value }
    case .folder where name == AttributeName.programs, .keychain where name == AttributeName.programs:
      try setRules(ProgramRules.checked(value), at: node.place, permit)
    case .suite(let suite) where name == KeyholeAttribute.history.name: try setHistory(value, of: suite)
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
    if isComputed(name, of: node.place) { return }
    switch node.place {
    case .item(let item), .value(let item): try removeAttribute(name, of: item, permit)
    case .scratch(let scratch):
      let removed = try file(scratch).state.withLock { $0.attributes.removeValue(forKey: name) }
      guard removed != nil else { throw .noSuchAttribute }
    case .folder where name == AttributeName.programs, .keychain where name == AttributeName.programs:
      guard try rules(at: node.place) != nil else { throw .noSuchAttribute }
      try setRules(nil, at: node.place, permit)
    case .suite(let suite) where name == KeyholeAttribute.history.name:
      _ = try attribute(name, of: node)
      try settings.engine.history?.setKeepsVersions(true, of: suite)
    default: _ = try attribute(name, of: node)
    }
  }

  private func setHistory(_ value: [UInt8], of suite: ExactString) throws(StoreError) {
    guard let history = settings.engine.history else { throw .noHistory }
    guard value == Array("0".utf8) else { throw .invalidValue(reason: "of a suite it can only be 0") }
    try history.setKeepsVersions(false, of: suite)
  }

  private func requireUserName(_ name: String) throws(StoreError) {
    guard name.utf8.span.isUserAttribute else {
      throw .unsupported(reason: "only names below `user.` are kept")
    }
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

  private func nameAttribute(_ name: String, _ plain: ExactString) throws(StoreError) -> AttributeValue {
    guard name == AttributeName.name else { throw .unsupported(reason: "a directory has its name only") }
    return .text(plain.string)
  }

  func checkUnchanged(
    _ name: String, _ value: [UInt8], _ node: Node
  ) throws(StoreError) {
    guard try attribute(name, of: node) == value else {
      throw .notPermitted(reason: "`\(name)` is the name; use mv")
    }
  }
}
