import DefaultKeychain
public import Foundation
import Model
import WrapperCore

/// An item of the keychain with the attributes that every class has.
///
/// Attributes are saved with the value; one that is set to nil is removed. Loading replaces unsaved ones.
open class SingleValueKeychainItem: @unchecked Sendable {
  // Every attribute is behind a lock of its own.

  /// A kind of item, such as “Web form password”.
  @QueryElement(key: kSecAttrDescription) open var description: String?
  /// A comment that the user may edit.
  @QueryElement(key: kSecAttrComment) open var comment: String?
  /// A four-character code as a number.
  @QueryElement(key: kSecAttrCreator) open var creator: CFNumber?
  /// A four-character code as a number.
  @QueryElement(key: kSecAttrType) open var type: CFNumber?
  /// The name that the user sees; nil: the service or the server.
  @QueryElement(key: kSecAttrLabel) open var label: String?
  /// Whether lists of items should leave it out; Keyhole stores the flag and lists the item.
  @QueryElement(key: kSecAttrIsInvisible) open var isInvisible: Bool?
  /// When the item can be read: one of the constants that begin with `kSecAttrAccessible`.
  @QueryElement(key: kSecAttrAccessible, constraints: [.overridenBy(kSecAttrAccessControl)])
  open var accesible: CFString?
  /// In whole seconds.
  @QueryElement(readOnlyKey: kSecAttrCreationDate) open private(set) var creationDate: Date?
  /// In whole seconds.
  @QueryElement(readOnlyKey: kSecAttrModificationDate) open private(set) var modificationDate: Date?

  init() {}

  /// The class of the item.
  open var itemClass: CFString { preconditionFailure("a class of items says which it is") }

  /// The attributes that identify an item of the class.
  open var primaryKey: Set<CFString> { preconditionFailure("a class of items says what tells them apart") }

  /// The items that are matched: for a subclass of one's own all of its `itemClass`.
  var query: ItemQuery {
    itemClass == kSecClassInternetPassword ? .internet(.any) : .generic(service: nil, account: nil)
  }

  /// Takes over the attributes of a stored item; nil: there is none.
  func load(_ item: Item?) {
    _description.load(item?.text("description"))
    _comment.load(item?.text("comment"))
    _creator.load(item?.text("creator").flatMap { UInt32($0) }.map { NSNumber(value: $0) })
    _type.load(item?.text("type").flatMap { UInt32($0) }.map { NSNumber(value: $0) })
    _label.load(item?.label?.string)
    _isInvisible.load(item?.text("isInvisible").map { $0 == "true" })
    _accesible.load(item.map { SecurityWords.accessibilities.code($0.accessibility.rawValue) })
    _creationDate.load(item?.created.date)
    _modificationDate.load(item?.modified.date)
  }

  /// Sets the changed attributes in an item that is about to be stored.
  func apply(to item: inout Item) throws(StoreError) {
    _description.ifSet { item.set("description", $0) }
    _comment.ifSet { item.set("comment", $0) }
    _creator.ifSet { item.set("creator", $0?.code?.description) }
    _type.ifSet { item.set("type", $0?.code?.description) }
    _label.ifSet { item.label = $0.map { ExactString($0) } }
    _isInvisible.ifSet { item.set("isInvisible", $0.map { $0 ? "true" : "false" }) }
    var accessibility: Accessibility? = item.accessibility
    _accesible.ifSet { accessibility = $0.map(Self.accessibility) ?? .whenUnlocked }
    guard let accessibility else { throw .invalidValue(reason: "no such accessibility") }
    item.accessibility = accessibility
  }

  func wasSaved() {
    for element in [_description, _comment, _label] { element.wasSaved() }
    for element in [_creator, _type] { element.wasSaved() }
    _isInvisible.wasSaved()
    _accesible.wasSaved()
  }

  private static func accessibility(_ code: CFString) -> Accessibility? {
    SecurityWords.accessibilities.word(code).flatMap(Accessibility.init)
  }
}

extension Item {
  fileprivate func text(_ name: ExactString) -> String? {
    attributes[name].map { String(decoding: $0, as: UTF8.self) }
  }

  fileprivate mutating func set(_ name: ExactString, _ text: String?) {
    attributes[name] = text.map { Array($0.utf8) }
  }
}

extension Timestamp {
  /// Whole seconds, as Apple's keychain has them; the order of items goes by the exact time.
  fileprivate var date: Date { Date(timeIntervalSince1970: Double(seconds)) }
}
