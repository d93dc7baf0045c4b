public import Model
import SecretMemory
import Synchronization

extension KeychainStore {
  /// Before the rules of a folder, or of the keychain, are changed to `rules`; nil: removed.
  ///
  /// A person is asked where there are rules, or items with access flags that the new rules may let programs into. Present
  /// rules never deny it: they name programs that may use secrets, not that may change rules.
  /// - Throws: `locked`, `accessDenied` where no person can be asked.
  public nonisolated func permission(
    toChangeRulesOf scope: RuleScope, to rules: ExactString?, path: String, by caller: Caller
  ) throws(StoreError) -> Permission {
    let old = try folderRules().rules(of: scope)
    let line = "rules for programs: \(Item.shown(old)) → \(Item.shown(rules))"
    let change = ProtectionChange(lines: [line], removesProtection: rules == nil)
    return try permission(toChangeRulesOf: scope, change, path, caller)
  }

  /// The same for a process that does not say what the rules are to be.
  public nonisolated func permission(
    toChangeRulesOf scope: RuleScope, path: String, by caller: Caller
  ) throws(StoreError) -> Permission {
    try permission(toChangeRulesOf: scope, .unknown, path, caller)
  }

  private nonisolated func permission(
    toChangeRulesOf scope: RuleScope, _ change: ProtectionChange, _ path: String, _ caller: Caller
  ) throws(StoreError) -> Permission {
    guard engine.locking.lockState == .open else { throw .locked }
    if isDecidedElsewhere { return .given(Permit(item: scope.permitID, for: .change)) }
    let (present, demands) = try protection(of: scope)
    guard !present.isEmpty || !demands.isEmpty else {
      return .given(Permit(item: scope.permitID, for: .change))
    }
    let controller = try requireController()
    let demand = demands.count > 1 ? Demand.all(demands) : demands.first ?? consentToChange(sealed: false)
    var subject = PermissionRequest.Subject(
      item: scope.permitID, path: path, operation: .change, caller: caller.identity(), demand: demand)
    subject.change = change
    return try controller.permission(PermissionRequest(subject, controller))
  }

  /// Sets the rules of a folder, or of the keychain; nil: none.
  ///
  /// - Throws: `accessDenied` without the permit that it takes; `locked`, `readOnly`, `noSpace`.
  public nonisolated func setRules(
    _ rules: ExactString?, of scope: RuleScope, _ permit: Permit?
  ) throws(StoreError) {
    guard engine.locking.lockState == .open else { throw .locked }
    let (present, demands) = try protection(of: scope)
    let isOpen = isDecidedElsewhere || (present.isEmpty && demands.isEmpty)
    guard isOpen || (permit?.item == scope.permitID && permit?.operation == .change) else {
      throw .accessDenied(reason: "a person has to agree to a change of these rules")
    }
    try permit?.requireUnchangedCaller()
    try keepRules { item in item.attributes[scope.attribute] = rules.map { Array($0.utf8) } }
  }

  /// The change of rules that another process makes with the item that keeps them; nil: a folder has none any more.
  ///
  /// - Throws: `invalidValue` for what are no rules.
  public nonisolated func rulesToChange(
    to item: Item
  ) throws(StoreError) -> [(scope: RuleScope, rules: ExactString?)] {
    let present = try folderRules().item?.attributes ?? [:]
    var changes: [(scope: RuleScope, rules: ExactString?)] = []
    for name in Set(present.keys).union(item.attributes.keys)
    where !ConfigurationKey.isAttribute(name) && present[name] != item.attributes[name] {
      let rules = item.attributes[name].flatMap { ExactString(utf8: $0) }
      guard let scope = RuleScope(attribute: name),
        item.attributes[name] == nil || rules.flatMap({ ProgramRules($0) }) != nil
      else { throw .invalidValue(reason: "these are no rules for programs") }
      changes.append((scope, rules))
    }
    return changes
  }

  /// The rules that hold there, and what the flags of the items there demand.
  private nonisolated func protection(
    of scope: RuleScope
  ) throws(StoreError) -> (rules: [ProgramRules.Rule], demands: [Demand]) {
    try read { index in
      let affected = index.all.filter { !$0.access.isEmpty && scope.holds(for: $0.identity) }
      var demands: [Demand] = []
      for demand in affected.compactMap(\.demand) where !demands.contains(demand) { demands.append(demand) }
      return (index.folderRules.inEffect(in: scope), demands)
    }
  }

  /// Whether a folder, or the keychain, has rules for programs.
  public nonisolated var hasFolderRules: Bool {
    get throws(StoreError) {
      try folderRules().item?.attributes.keys.contains { RuleScope(attribute: $0) != nil } ?? false
    }
  }

  /// Changes the item that keeps the rules of folders, and makes it where it is missing.
  nonisolated func keepRules(_ body: @Sendable (inout Item) -> Void) throws(StoreError) {
    let present = try folderRules().item
    _ = try change { () throws(StoreError) -> Item in
      if let present {
        return try engine.update([present.id]) { body(&$0) }[0]
      }
      let now = Timestamp(seconds: 0)
      var item = Item(id: ItemID(rawValue: ""), identity: .rules, created: now, modified: now)
      body(&item)
      return try engine.add(item, secret: Self.nothing())
    } note: { store, item in
      store.index.withLock { _ = $0?.insert(item) }
    }
  }

  /// One byte, for keychains that take no empty secret.
  private static func nothing() throws(StoreError) -> SecretBytes {
    do { return try SecretBytes(count: 1) } catch { throw .outOfMemory }
  }
}
