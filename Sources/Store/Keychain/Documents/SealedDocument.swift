public import Model

/// A text of Keyhole's own that the vault keeps as the secret of an item which is not shown, such as the template of a view.
///
/// The item is a generic password of the service `org.keyhole.documents` with the document's name as its account. So the vault's
/// hash tree answers for it, a change of the passphrase seals it again, and a backup has it. It is of the class
/// `afterFirstUnlock`: what a document says is as open as the names of items are.
public struct SealedDocument: Hashable, Sendable {
  /// The path in the tree: `views/NAME`.
  public let name: ExactString
  /// The item that holds it.
  public let id: ItemID
  /// The values that are kept with the text. Names that begin with ``derived`` are computed from it and from other things; a change of
  /// these alone is no change of the document.
  public var properties: [ExactString: [UInt8]]
  /// When the text or a property changed last.
  public var modified: Timestamp
  /// The length of the text in bytes.
  public let size: Int

  /// The beginning of the names of properties that are computed.
  public static let derived = "derived/"

  /// The property that names symbolic links to the document. They are outside the vault: a change of it makes no version, and no version
  /// changes it.
  public static let links: ExactString = "links"

  /// How many bytes a text has at most: as many as a secret.
  public static let limit = 1 << 20

  init?(_ item: Item) {
    guard let name = item.identity.documentName else { return nil }
    (self.name, id, properties) = (name, item.id, item.attributes)
    (modified, size) = (item.modified, item.size)
  }

  /// A document as it was; nil: the version is of another item. Its id is the version's.
  public init?(_ version: ItemVersion) { self.init(version.item) }

  /// A property that is text; nil: there is none.
  public func text(_ property: ExactString) -> String? {
    properties[property].flatMap { ExactString(utf8: $0) }?.string
  }

  /// Whether at most what is computed differs.
  func isUnchanged(since other: SealedDocument) -> Bool {
    id == other.id && name == other.name && modified == other.modified && size == other.size
      && Self.own(properties) == Self.own(other.properties)
  }

  /// nil: nothing but what is computed differs.
  static func change(_ item: Item, since old: Item, _ origin: Change.Origin) -> Change? {
    let subject = item.subject
    if item.modified != old.modified || item.size != old.size {
      return Change(.modified, subject, origin: origin)
    }
    guard own(item.attributes) != own(old.attributes) else { return nil }
    return Change(.attributes, subject, origin: origin)
  }

  private static func own(_ properties: [ExactString: [UInt8]]) -> [ExactString: [UInt8]] {
    properties.filter { !$0.key.string.hasPrefix(derived) }
  }
}

extension ItemIdentity {
  private static let documents: ExactString = "org.keyhole.documents"

  /// The item that holds a sealed document.
  package static func document(_ name: ExactString) -> ItemIdentity {
    .generic(service: documents, account: name)
  }

  /// The name of the sealed document that an item of this identity holds; nil: it holds none.
  package var documentName: ExactString? {
    if case .generic(Self.documents, let name) = self { name } else { nil }
  }

  /// Whether an item of this identity holds a sealed document. It is not shown.
  package var isDocument: Bool { documentName != nil }
}
