public import Model
public import Store
import Synchronization

// The questions before an operation. Each function returns nil where there is nothing to ask about.
extension FileTree {
  /// Before `open`, and before `truncate`, which opens for writing.
  ///
  /// - Throws: `accessDenied`, `locked`, `notFound`.
  public func permission(toOpen node: Node, _ mode: OpenMode, by caller: Caller) throws(StoreError)
    -> Permission?
  {
    if case .code(let place) = node.place {
      guard !mode.contains(.write) else { throw .codeIsComputed }
      return try permission(for: place, to: .read, .code, caller)
    }
    if case .history(.version(let item, let number)) = node.place {
      guard !mode.contains(.write) else { return nil }
      return try permission(toOpen: item, version: number, node.place.path, caller)
    }
    if case .view(.file(.views, let name)) = node.place, !node.isRemoved {
      return try permission(toOpenView: name, writing: mode.contains(.write), by: caller)
    }
    // Of a removed file the place may be another's by now.
    guard let (place, which) = node.place.secret, !node.isRemoved else { return nil }
    return try permission(for: place, to: mode.operation, which, caller)
  }

  /// Before `create`: of a file that is there already, and of an item that needs a password.
  public func permission(
    toCreate name: some Collection<UInt8>, in directory: Node, _ mode: OpenMode, by caller: Caller
  ) throws(StoreError) -> Permission? {
    if case .view(.folder(.views)) = directory.place {
      return try permission(toReplaceView: name, by: caller)
    }
    guard case .item(let place) = directory.place,
      let which = Place(secretOf: place, named: name)?.secret?.which
    else { return nil }
    return try permission(for: place, to: mode.union(.write).operation, which, caller)
  }

  /// Before `rename`: of a value, and over one.
  public func permission(
    toRename name: some Collection<UInt8>, in directory: Node, to newName: some Collection<UInt8>,
    by caller: Caller
  ) throws(StoreError) -> Permission? {
    if case .view(.folder(.views)) = directory.place {
      return try permission(toRenameView: name, in: directory, to: newName, by: caller)
    }
    guard case .item(let place) = directory.place else { return nil }
    let (old, new) = (Place(secretOf: place, named: name), Place(secretOf: place, named: newName))
    guard let which = (old ?? new)?.secret?.which else { return nil }
    guard let attributes = try scratchAttributes(name, in: directory) else {
      return try permission(for: place, to: .readWrite, which, caller)
    }
    guard which == .value else { return try permission(for: place, to: .write, which, caller) }
    var item = try anyItem(place)
    let before = item
    for (name, value) in attributes where AttributeName.isProtection(name) {
      try applyAtCommit(name, value, to: &item)
    }
    guard item != before else { return try permission(for: place, to: .write, .value, caller) }
    return try permission(for: place, changingTo: item, caller)
  }

  /// The attributes that were set on a scratch file that is to become a value; nil: it is none.
  private func scratchAttributes(
    _ name: some Collection<UInt8>, in directory: Node
  ) throws(StoreError) -> [String: [UInt8]]? {
    guard case .scratch(let place) = try child(of: directory, named: name).place else { return nil }
    return overlay.withLock { $0[place] }?.state.withLock { $0.attributes }
  }

  /// Before `setAttribute`, or `removeAttribute` where `value` is nil: of what protects an item.
  public func permission(
    toSet name: String, to value: [UInt8]?, of node: Node, by caller: Caller
  ) throws(StoreError) -> Permission? {
    guard node.keptAttributes == nil else { return nil }
    if name == AttributeName.programs, let scope = try ruleScope(at: node.place) {
      let rules = try value.map { (value) throws(StoreError) in try ProgramRules.checked(value) }
      return try requireKeychain().permission(
        toChangeRulesOf: scope, to: rules, path: node.place.path, by: caller)
    }
    guard AttributeName.isProtection(name), let place = node.place.item, stagedItem(place) == nil else {
      return nil
    }
    var changed = try anyItem(place)
    let before = changed
    if let value {
      try ItemAttributes.set(name, to: value, on: &changed)
      // No question about what is refused afterwards.
      if changed.access != before.access { try requireSupport(for: changed.access) }
    } else {
      try ItemAttributes.remove(name, from: &changed)
    }
    return changed == before ? nil : try permission(for: place, changingTo: changed, caller)
  }

  /// An item's path, or that of a version in `.keyhole/history`; nil: there is none.
  public func path(of item: ItemID) throws(StoreError) -> String? {
    if let number = item.version?.number {
      let identity = try requireKeychain().engine.requireHistory().version(item).item.identity
      return Place.history(.version(ItemPlace(identity), number)).path
    }
    let keychain = try requireKeychain()
    if let item = try keychain.item(item) { return Self.path(of: item.identity) }
    return try keychain.document(item)?.name.string
  }

  /// The path that an item of this identity has, or would have.
  public static func path(of identity: ItemIdentity) -> String { Place.item(ItemPlace(identity)).path }

  /// The path of what rules hold for.
  public static func path(of scope: RuleScope) -> String {
    switch scope {
    case .keychain: Place.keychain.path
    case .folder(let itemClass, let name):
      Place.folder(FolderPlace(itemClass: itemClass, name: PathName(name))).path
    }
  }

  /// The permit where no question is needed. - Throws: `accessDenied` where one would be.
  func permitNow(_ permission: Permission?) throws(StoreError) -> Permit? {
    switch permission {
    case .none: return nil
    case .given(let permit): return permit
    case .asked, .askedTogether: throw .accessDenied(reason: "a person has to agree first")
    }
  }

  private func permission(
    for place: ItemPlace, to operation: AccessOperation, _ which: ItemSecrets, _ caller: Caller
  ) throws(StoreError) -> Permission? {
    let keychain = try requireKeychain()
    if let staged = stagedItem(place) {
      // It waits in memory for the secret, which is asked about.
      guard which == .value else { return nil }
      return try keychain.permission(forNew: staged.item, path: Place.item(place).path, by: caller)
    }
    guard let item = try storedItem(place) else { return nil }
    return try keychain.permission(
      for: item, to: operation, which, path: Place.item(place).path, by: caller)
  }

  private func permission(
    for place: ItemPlace, changingTo changed: Item, _ caller: Caller
  ) throws(StoreError) -> Permission? {
    let (keychain, path) = (try requireKeychain(), Place.item(place).path)
    if stagedItem(place) != nil { return try keychain.permission(forNew: changed, path: path, by: caller) }
    guard let item = try storedItem(place) else { return nil }
    return try keychain.permission(for: item, changingTo: changed, path: path, by: caller)
  }
}

extension OpenMode {
  /// The operation that an answer to a question about this open has to cover.
  fileprivate var operation: AccessOperation {
    contains(.write) ? contains(.read) ? .readWrite : .write : .read
  }
}

extension Place {
  fileprivate var item: ItemPlace? {
    switch self {
    case .item(let item), .value(let item): item
    default: nil
    }
  }
}
