import Model
import Platform

/// An item in few bytes of one allocation. As values, the strings and the attributes of an item take several times as much.
///
/// The id stands first, then the identity: both are compared without unpacking the item. Equal items have equal bytes.
struct PackedItem: Equatable {
  private let bytes: [UInt8]

  init(_ item: Item) {
    var writer = PackedWriter()
    writer.id(item.id)
    writer.identity(item.identity)
    writer.time(item.created)
    writer.time(item.modified)
    writer.number(UInt64(bitPattern: Int64(item.size)))
    writer.optionalText(item.label)
    writer.optionalText(item.programs)
    writer.optionalText(item.collection)
    writer.accessibility(item.accessibility)
    writer.flags(item.access.flags)
    writer.bool(item.keepsLineEnd)
    writer.bool(item.isSealed)
    writer.otpauth(item.otpauth)
    writer.attributes(item.attributes)
    bytes = writer.bytes.withoutRoom
  }

  var item: Item {
    var reader = PackedReader(bytes)
    let (id, identity) = (reader.id(), reader.identity())
    return Self.item(id, identity, &reader)
  }

  /// The same, of an item that has the identity: its texts are not made again.
  func item(_ identity: ItemIdentity, _ key: PackedKey) -> Item {
    var reader = PackedReader(bytes)
    let id = reader.id()
    reader.skip(key.bytes)
    return Self.item(id, identity, &reader)
  }

  /// `reader` stands behind the identity.
  private static func item(_ id: ItemID, _ identity: ItemIdentity, _ reader: inout PackedReader) -> Item {
    var item = Item(id: id, identity: identity, created: reader.time(), modified: reader.time())
    item.size = Int(truncatingIfNeeded: reader.number())
    item.label = reader.optionalText()
    item.programs = reader.optionalText()
    item.collection = reader.optionalText()
    item.accessibility = reader.accessibility()
    item.access = AccessFlags(reader.flags())
    item.keepsLineEnd = reader.bool()
    item.isSealed = reader.bool()
    item.otpauth = reader.otpauth()
    item.attributes = reader.attributes()
    return item
  }

  var id: ItemID {
    var reader = PackedReader(bytes)
    return reader.id()
  }

  var identity: ItemIdentity {
    var reader = PackedReader(bytes)
    reader.skipID()
    return reader.identity()
  }

  var modified: Timestamp {
    var reader = PackedReader(bytes)
    reader.skipID()
    reader.skipIdentity()
    _ = reader.time()
    return reader.time()
  }

  func has(_ key: PackedKey) -> Bool {
    var reader = PackedReader(bytes)
    if key.isIdentity { reader.skipID() }
    return reader.isAt(key.bytes)
  }
}

/// The id or the identity of an item, as it stands in the packed one.
struct PackedKey {
  fileprivate let bytes: [UInt8]
  fileprivate let isIdentity: Bool

  init(_ id: ItemID) {
    var writer = PackedWriter()
    writer.id(id)
    (bytes, isIdentity) = (writer.bytes, false)
  }

  init(_ identity: ItemIdentity) {
    var writer = PackedWriter()
    writer.identity(identity)
    (bytes, isIdentity) = (writer.bytes, true)
  }

  var hash: UInt32 {
    var hasher = Hasher()
    unsafe bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
    return UInt32(truncatingIfNeeded: hasher.finalize())
  }
}
