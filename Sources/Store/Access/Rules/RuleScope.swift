public import Model

/// The scope of rules for programs beyond one item.
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
  package static let rules = ItemIdentity.generic(service: "org.keyhole.rules", account: "rules")

  /// Whether it names the item that keeps the rules of folders.
  package var isRules: Bool { self == .rules }

  /// The service of a vault's items that open what another keychain holds sealed. They are not shown.
  public static let seals: ExactString = "org.keyhole.seals"

  /// Whether it names a generic item of the service `org.keyhole.seals`, which holds the key of sealed items.
  public var isSeal: Bool {
    if case .generic(Self.seals, _) = self { true } else { false }
  }

  /// The service of a vault's items that were removed and are kept for a while. They are not shown.
  private static let removed: ExactString = "org.keyhole.removed"

  /// The place of a removed item in a vault. `account`: one for each.
  package static func removed(account: ExactString) -> ItemIdentity {
    .generic(service: removed, account: account)
  }

  /// Whether an item of this identity was removed, and is kept for a while.
  package var isRemoved: Bool {
    if case .generic(Self.removed, _) = self { true } else { false }
  }

  /// Whether versions of such an item are kept: of sealed documents, but of nothing else that Keyhole keeps for itself.
  package var hasVersions: Bool { !isReserved || isDocument }

  /// Keyhole keeps something of its own there.
  var isReserved: Bool { self == .rules || isSeal || isRemoved || isDocument }
}

extension Item {
  /// Whether it is shown to a person: the item that keeps the rules of folders is not, nor are sealed documents.
  package var isShown: Bool { identity != .rules && !identity.isDocument }
}

extension KeychainIndex {
  /// The rules of folders and of the keychain.
  public var folderRules: FolderRules { FolderRules(rulesItem) }

  /// Every item, with the one that keeps the rules and the sealed documents: for another process, which has them in an index
  /// of its own.
  public var everyItem: [Item] { Array(all) + (rulesItem.map { [$0] } ?? []) + documentItems.values }

  /// An item that is not among ``all``: the one that keeps the rules, or a sealed document; nil: it is another one's.
  public func hiddenItem(_ id: ItemID) -> Item? {
    rulesItem(id) ?? documentItems.values.first { $0.id == id }
  }

  /// An item as `insert` returns it: also one that holds a sealed document.
  func known(_ id: ItemID) -> Item? { self[id] ?? documentItems.values.first { $0.id == id } }

  /// The item that keeps the rules, if this is its id, or none is given; nil: it is another one's.
  public func rulesItem(_ id: ItemID? = nil) -> Item? {
    id == nil || rulesItem?.id == id ? rulesItem : nil
  }
}

extension ItemID {
  private static let rulesPrefix = "rules "

  /// The item ID in a permit to change rules: no item has it.
  init(ofRules attribute: ExactString) {
    self.init(rawValue: Self.rulesPrefix + attribute.string)
  }

  /// Whether a question is about the rules of a folder or of the keychain, and not about an item.
  public var isOfRules: Bool { rawValue.hasPrefix(Self.rulesPrefix) }
}

extension RuleScope {
  var permitID: ItemID { ItemID(ofRules: attribute) }
}
