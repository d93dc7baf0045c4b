import Crypto
import Model

/// The associated data of a seal: the place that a sealed blob belongs to.
///
/// Fields in ascending order of their tags, after a fixed prefix, so that a blob opens in the place that it was
/// sealed for and in no other.
package struct Binding {
  package enum Purpose: UInt8 {
    case slot = 1
    case classKey = 2
    case manifest = 3
    case metadata = 4
    case wrap = 5
    case value = 6
    case password = 7
    case handed = 8
    case commitment = 9
    case carriedKey = 10
    case version = 11
  }

  private var writer = FieldWriter(capacity: 192)

  package var bytes: [UInt8] { writer.bytes }

  private init(_ format: VaultFormat, _ purpose: Purpose, store: [UInt8]? = nil) {
    writer.put(raw: format.prefix.utf8)
    if let store { writer.put(1, store) }
    writer.put(2, purpose.rawValue)
  }

  /// `purpose`: `slot`, or `commitment` for the key that proves which key opens the slot.
  package static func slot(
    _ purpose: Purpose = .slot, _ format: VaultFormat, store: [UInt8], _ slot: KeySlot
  ) -> Binding {
    var binding = Binding(format, purpose, store: store)
    binding.writer.put(3, slot.id)
    binding.writer.put(4, slot.kind)
    binding.writer.put(5, slot.parameters)
    if format >= .two { binding.writer.put(14, slot.publicKey) }
    return binding
  }

  /// `purpose`: `classKey`, or `carriedKey` for the seal around that of another device.
  package static func classKey(
    _ purpose: Purpose = .classKey, _ format: VaultFormat, store: [UInt8], id: UInt64, class: UInt8,
    device: [UInt8]
  ) -> Binding {
    var binding = Binding(format, purpose, store: store)
    binding.writer.put(3, id)
    binding.writer.put(6, `class`)
    binding.writer.put(7, device)
    return binding
  }

  package static func manifest(_ format: VaultFormat, store: [UInt8], _ header: VaultHeader) -> Binding {
    var binding = Binding(format, .manifest, store: store)
    binding.writer.put(8, header.critical)
    binding.writer.put(9, header.features)
    return binding
  }

  package static func metadata(
    _ format: VaultFormat, store: [UInt8], item: ItemKey, revision: UInt64, tag: [UInt8]
  ) -> Binding {
    var binding = Binding(format, .metadata, store: store)
    binding.writer.put(10, item)
    binding.writer.put(11, revision)
    binding.writer.put(12, tag)
    return binding
  }

  /// An earlier version of an item's metadata.
  package static func version(store: [UInt8], item: ItemKey, revision: UInt64) -> Binding {
    var binding = Binding(.two, .version, store: store)
    binding.writer.put(10, item)
    binding.writer.put(11, revision)
    return binding
  }
}

extension Binding {
  /// A secret that another keychain keeps: the item is the one that holds its key.
  static func handed(item: ItemID) -> Binding {
    var binding = Binding(.one, .handed)
    binding.writer.put(10, item.rawValue.utf8)
    return binding
  }
}

/// The place of an item's secret: class, access flags and rules among its fields.
package struct SecretBinding {
  /// The purpose is the one byte in which the bindings of a secret's seals differ.
  private static let purposeOffset = 10 + 5 + 16 + 5

  /// For the purpose `wrap`.
  package let bytes: [UInt8]

  package func bytes(for purpose: Binding.Purpose) -> [UInt8] {
    var bytes = bytes
    bytes[Self.purposeOffset] = purpose.rawValue
    return bytes
  }

  package init(
    _ format: VaultFormat, store: [UInt8], _ place: SecretPlace, _ facts: SecretFacts, classKey: UInt64,
    kind: UInt64, parameters: [UInt8]
  ) {
    var writer = FieldWriter(capacity: 256)
    writer.put(raw: format.prefix.utf8)
    writer.put(1, store)
    writer.put(2, Binding.Purpose.wrap.rawValue)
    writer.put(3, classKey)
    writer.put(4, kind)
    writer.put(5, parameters)
    writer.put(6, facts.accessibility.code)
    writer.put(10, place.item)
    writer.put(11, place.revision)
    writer.put(13, facts.access)
    if format >= .two { writer.put(15, place.part) }
    bytes = writer.bytes
  }
}

/// Which secret of which item.
package struct SecretPlace: Hashable {
  /// The number of an item's secret; others are its further secrets.
  package static let main: UInt8 = 0

  package var item: ItemKey
  package var part = main
  /// The revision that the secret is sealed to.
  package var revision: UInt64

  package init(item: ItemKey, part: UInt8 = main, revision: UInt64) {
    (self.item, self.part, self.revision) = (item, part, revision)
  }
}

/// The rules for a secret, in the form that its seal is bound to.
enum AccessRules {
  private static let none = digest(fields: [], programs: nil)

  /// SHA-256 of the access flags in their order and the rules for programs.
  static func digest(_ access: AccessFlags, programs: ExactString?) -> [UInt8] {
    guard !access.isEmpty || programs != nil else { return none }
    return digest(fields: access.flags.map(\.code), programs: programs)
  }

  private static func digest(fields: [UInt8], programs: ExactString?) -> [UInt8] {
    var writer = FieldWriter()
    writer.put(1, fields)
    if let programs { writer.put(2, programs.utf8) }
    return Array(SHA256.hash(data: writer.bytes))
  }
}
