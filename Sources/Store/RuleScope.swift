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
    let parts = attribute.string.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
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
  /// The item that keeps the rules of folders and of the keychain as its attributes. Nobody is shown it.
  static let rules = ItemIdentity.generic(service: "org.keyhole.rules", account: "rules")

  /// The service of a vault's items that open what another keychain holds sealed. Nobody is shown them.
  public static let seals: ExactString = "org.keyhole.seals"

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
  /// Whether an asker may change the rules of a folder, or of the keychain.
  ///
  /// It takes what the present rules say, and what the flags demand of each item that the new ones may let
  /// programs into.
  /// - Throws: `locked`, `accessDenied`.
  public nonisolated func permission(
    toChangeRulesOf scope: RuleScope, path: String, by asker: () -> Asker?
  ) throws(StoreError) -> Permission {
    guard engine.lockState == .open else { throw .locked }
    if engine.decidesAccess { return .given(Permit(item: scope.permitID, password: nil)) }
    let (rules, demands) = try protection(of: scope)
    let permit = Permit(item: scope.permitID, password: nil)
    guard !rules.isEmpty || !demands.isEmpty else { return .given(permit) }
    guard let gatekeeper else { throw .accessDenied(reason: "nobody can be asked here") }
    guard let asker = asker() else {
      throw .accessDenied(reason: "who asks is in another namespace, or can't be told")
    }
    switch rules.action(for: asker) ?? (demands.isEmpty ? .allow : .ask) {
    case .allow: return .given(permit)
    case .deny: throw .accessDenied(reason: "the rules keep \(asker.program) out")
    case .ask:
      let demand = demands.count > 1 ? Demand.all(demands) : demands.first ?? .consent
      return try gatekeeper.permission(
        PermissionRequest(scope.permitID, path, .change, asker, demand, .none, gatekeeper) { _ in })
    }
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
    guard isOpen || permit?.item == scope.permitID else {
      throw .accessDenied(reason: "it takes what the rules demand to change them")
    }
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

extension [ProgramRules.Rule] {
  /// What the first rule says that fits; nil: none does.
  func action(for asker: Asker) -> ProgramRules.Action? {
    first { $0.fits(asker) }?.action
  }
}
