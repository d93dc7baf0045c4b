public import Model

/// The rules of folders and of the keychain itself, which an item that is not shown keeps as its attributes.
public struct FolderRules: Sendable {
  /// nil: there are no rules.
  let item: Item?

  init(_ item: Item?) {
    self.item = item
  }

  /// The rules that a folder or the keychain itself has; nil: none.
  public func rules(of scope: RuleScope) -> ExactString? {
    item?.attributes[scope.attribute].flatMap { ExactString(utf8: $0) }
  }

  /// The rules that an item has from its folder and from the keychain, the nearest first.
  func inherited(by identity: ItemIdentity) -> [ProgramRules.Rule] {
    guard item != nil else { return [] }
    return [.folder(identity.itemClass, identity.folder), .keychain].flatMap { list(of: $0) }
  }

  /// The rules that hold in a folder, the nearest first.
  func inEffect(in scope: RuleScope) -> [ProgramRules.Rule] {
    scope == .keychain ? list(of: .keychain) : list(of: scope) + list(of: .keychain)
  }

  /// Whether `item`, which `before` is to become, is as well protected: by the same flags and rules, its folder's included.
  func keepProtection(of before: Item, in item: Item) -> Bool {
    let (old, new) = (inherited(by: before.identity), inherited(by: item.identity))
    let isGuarded = !before.access.isEmpty || before.programs != nil || !old.isEmpty
    return !isGuarded || (before.hasSameProtection(as: item) && old == new)
  }

  private func list(of scope: RuleScope) -> [ProgramRules.Rule] {
    guard let text = item?.attributes[scope.attribute] else { return [] }
    return ProgramRules.rules(reading: ExactString(utf8: text) ?? "")
  }
}
