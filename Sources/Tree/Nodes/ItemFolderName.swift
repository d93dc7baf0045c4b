public import Model

/// Where an item's folder is: the names of the levels below `generic`, `internet` or `other`.
public struct ItemFolderName: Hashable, Sendable {
  /// The class, which is the folder of `keychain`.
  public let itemClass: ItemClass
  /// The service or server; nil in `other`, which has one level only.
  public let parent: PathName?
  /// The account, an internet password's account with its parts, or the label.
  public let leaf: PathName

  /// The folder of an item with this primary key. Names that are too long are cut (SPECIFICATION.md, section 2).
  public init(_ identity: ItemIdentity) {
    itemClass = identity.itemClass
    switch identity {
    case .generic(let service, let account): (parent, leaf) = (PathName(service), PathName(account))
    case .internet(let internet):
      (parent, leaf) = (PathName(internet.server), InternetLeaf(internet).pathName)
    case .other(let label): (parent, leaf) = (nil, PathName(label))
    }
  }

  private init(_ name: ItemFolderName, leaf: PathName) {
    itemClass = name.itemClass
    parent = name.parent
    self.leaf = leaf
  }

  /// The folder of a duplicate: of items with one identity, only the oldest has the plain name.
  public func disambiguated(by id: ItemID) -> ItemFolderName {
    ItemFolderName(self, leaf: leaf.disambiguated(by: id))
  }
}

extension ItemFolderName {
  /// Which names the leaves of a class can have.
  public static func leafLevel(of itemClass: ItemClass) -> PathName.Level {
    itemClass == .internet ? .internetLeaf : .plain
  }

  /// The value of `user.keyhole.name`: the leaf before it is encoded and cut.
  public static func plainName(of identity: ItemIdentity) -> ExactString {
    switch identity {
    case .generic(_, let account): account
    case .internet(let internet): InternetLeaf(internet).plain
    case .other(let label): label
    }
  }
}

extension ItemIdentity {
  /// The identity that two names stand for; nil: one of them is cut or disambiguated, and only the store's
  /// own listing can tell, or `leaf` was not made for the class.
  public init?(_ itemClass: ItemClass, parent: ExactString?, leaf: PathName) {
    let identity: ItemIdentity? =
      switch (itemClass, parent) {
      case (.generic, let service?): leaf.plain.map { .generic(service: service, account: $0) }
      case (.internet, let server?): InternetLeaf(leaf).map { .internet($0.identity(server: server)) }
      case (.other, nil): leaf.plain.map { .other(label: $0) }
      default: nil
      }
    guard let identity else { return nil }
    self = identity
  }
}
