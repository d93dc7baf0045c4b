public import Model

/// What rules for programs can hold for besides one item.
public enum RuleScope: Hashable, Sendable {
  case keychain
  /// A service or server.
  case folder(ItemClass, ExactString)

  /// The attribute that keeps the rules.
  var attribute: ExactString {
    switch self {
    case .keychain: "keychain"
    case .folder(let itemClass, let name): ExactString(itemClass.rawValue + "/" + name.string)
    }
  }

  /// nil: no attribute of that name keeps rules.
  init?(attribute: ExactString) {
    if attribute == "keychain" {
      self = .keychain
      return
    }
    // By scalars: a slash and a combining mark behind it are one Character.
    let parts = attribute.string.unicodeScalars.split(
      separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, let itemClass = ItemClass(rawValue: String(parts[0])) else { return nil }
    self = .folder(itemClass, ExactString(String(parts[1])))
  }

  /// Whether the rules hold for an item.
  func holds(for identity: ItemIdentity) -> Bool {
    switch self {
    case .keychain: true
    case .folder(let itemClass, let name): identity.itemClass == itemClass && identity.folder == name
    }
  }
}

extension ItemIdentity {
  /// The item that keeps the rules of folders and of the keychain as its attributes. It is not shown.
  static let rules = ItemIdentity.generic(service: "org.keyhole.rules", account: "rules")

  /// The service of a vault's items that open what another keychain holds sealed. They are not shown.
  public static let seals: ExactString = "org.keyhole.seals"

  /// Whether it names a generic item of the service `org.keyhole.seals`, which holds the key of sealed items.
  public var isSeal: Bool {
    if case .generic(Self.seals, _) = self { true } else { false }
  }

  /// Keyhole keeps something of its own there.
  var isReserved: Bool { self == .rules || isSeal }
}

extension KeychainIndex {
  /// The rules that a folder or the keychain itself has; nil: none.
  public func rules(of scope: RuleScope) -> ExactString? {
    rulesItem?.attributes[scope.attribute].flatMap { ExactString(utf8: $0) }
  }

  /// Every item, with the one that keeps the rules: for another process, which has them in an index of its own.
  public var everyItem: [Item] { Array(all) + (rulesItem.map { [$0] } ?? []) }

  /// The item that keeps the rules, if this is its id, or none is given; nil: it is another one's.
  public func rulesItem(_ id: ItemID? = nil) -> Item? {
    id == nil || rulesItem?.id == id ? rulesItem : nil
  }

  /// The rules that an item has from its folder and from the keychain, the nearest first.
  func inheritedRules(of identity: ItemIdentity) -> [ProgramRules.Rule] {
    guard rulesItem != nil else { return [] }
    return [.folder(identity.itemClass, identity.folder), .keychain].flatMap { rulesList(of: $0) }
  }

  /// The rules that hold in a folder, the nearest first.
  func rulesInEffect(in scope: RuleScope) -> [ProgramRules.Rule] {
    scope == .keychain ? rulesList(of: .keychain) : rulesList(of: scope) + rulesList(of: .keychain)
  }

  private func rulesList(of scope: RuleScope) -> [ProgramRules.Rule] {
    guard let text = rulesItem?.attributes[scope.attribute] else { return [] }
    return ProgramRules.rules(reading: ExactString(utf8: text) ?? "")
  }
}

extension KeychainStore {
  /// Before the rules of a folder, or of the keychain, are changed to `rules`; nil: removed.
  ///
  /// A person is asked where there are rules, or items with access flags that the new rules may let programs into. Present
  /// rules never deny it: they name programs that may use secrets, not that may change rules.
  /// - Throws: `locked`, `accessDenied` where no person can be asked.
  public nonisolated func permission(
    toChangeRulesOf scope: RuleScope, to rules: ExactString?, path: String, by caller: Caller
  ) throws(StoreError) -> Permission {
    let old = try read { $0.rules(of: scope) }
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
    guard engine.lockState == .open else { throw .locked }
    if engine.decidesAccess { return .given(Permit(item: scope.permitID, for: .change)) }
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
    guard engine.lockState == .open else { throw .locked }
    let (present, demands) = try protection(of: scope)
    let isOpen = engine.decidesAccess || (present.isEmpty && demands.isEmpty)
    guard isOpen || (permit?.item == scope.permitID && permit?.operation == .change) else {
      throw .accessDenied(reason: "a person has to agree to a change of these rules")
    }
    try permit?.requireUnchangedCaller()
    try keepRules { item in item.attributes[scope.attribute] = rules.map { Array($0.utf8) } }
  }

  /// What another process would change with the item that keeps the rules; nil: a folder has none any more.
  ///
  /// - Throws: `invalidValue` for what are no rules.
  public nonisolated func rulesToChange(
    to item: Item
  ) throws(StoreError) -> [(scope: RuleScope, rules: ExactString?)] {
    let present = try read { $0.rulesItem }?.attributes ?? [:]
    var changes: [(scope: RuleScope, rules: ExactString?)] = []
    for name in Set(present.keys).union(item.attributes.keys) where present[name] != item.attributes[name] {
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
      return (index.rulesInEffect(in: scope), demands)
    }
  }
}

extension ItemID {
  private static let rulesPrefix = "rules "

  /// What a permit to change rules is for: no item has such a name.
  fileprivate init(ofRules attribute: ExactString) {
    self.init(rawValue: Self.rulesPrefix + attribute.string)
  }

  /// Whether a question is about the rules of a folder or of the keychain, and not about an item.
  public var isOfRules: Bool { rawValue.hasPrefix(Self.rulesPrefix) }
}

extension RuleScope {
  fileprivate var permitID: ItemID { ItemID(ofRules: attribute) }
}
