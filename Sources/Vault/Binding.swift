import Crypto
import Model

/// What a sealed blob is bound to: the associated data of its AES-GCM.
///
/// Fields in ascending order of their tags, after a fixed beginning, so that no blob opens anywhere but in
/// the place it was sealed for.
struct Binding {
  enum Purpose: UInt8 {
    case slot = 1
    case classKey = 2
    case manifest = 3
    case metadata = 4
    case wrap = 5
    case value = 6
    case password = 7
    case handed = 8
  }

  private var writer = FieldWriter(capacity: 192)

  var bytes: [UInt8] { writer.bytes }

  private init(_ purpose: Purpose, store: [UInt8]? = nil) {
    writer.put(raw: "keyhole/v1".utf8)
    if let store { writer.put(1, store) }
    writer.put(2, purpose.rawValue)
  }

  static func slot(store: [UInt8], id: UInt64, kind: UInt64, parameters: [UInt8]) -> Binding {
    var binding = Binding(.slot, store: store)
    binding.writer.put(3, id)
    binding.writer.put(4, kind)
    binding.writer.put(5, parameters)
    return binding
  }

  static func classKey(store: [UInt8], id: UInt64, class: UInt8, device: [UInt8]) -> Binding {
    var binding = Binding(.classKey, store: store)
    binding.writer.put(3, id)
    binding.writer.put(6, `class`)
    binding.writer.put(7, device)
    return binding
  }

  static func manifest(store: [UInt8], critical: UInt64, features: UInt64) -> Binding {
    var binding = Binding(.manifest, store: store)
    binding.writer.put(8, critical)
    binding.writer.put(9, features)
    return binding
  }

  static func metadata(store: [UInt8], item: ItemKey, revision: UInt64, tag: [UInt8]) -> Binding {
    var binding = Binding(.metadata, store: store)
    binding.writer.put(10, item)
    binding.writer.put(11, revision)
    binding.writer.put(12, tag)
    return binding
  }
}

extension Binding {
  /// A secret that is handed to another keychain: the item is the one that keeps its key.
  static func handed(item: ItemID) -> Binding {
    var binding = Binding(.handed)
    binding.writer.put(10, item.rawValue.utf8)
    return binding
  }
}

/// What an item's secret is bound to: class, access flags and programs among them.
struct SecretBinding {
  /// The purpose is the one byte in which the bindings of key and value differ.
  private static let purposeOffset = 10 + 5 + 16 + 5

  /// For the purpose `wrap`.
  let bytes: [UInt8]

  func bytes(for purpose: Binding.Purpose) -> [UInt8] {
    var bytes = bytes
    bytes[Self.purposeOffset] = purpose.rawValue
    return bytes
  }

  init(
    store: [UInt8], item: ItemKey, _ facts: SecretFacts, classKey: UInt64, kind: UInt64,
    parameters: [UInt8]
  ) {
    var writer = FieldWriter(capacity: 256)
    writer.put(raw: "keyhole/v1".utf8)
    writer.put(1, store)
    writer.put(2, Binding.Purpose.wrap.rawValue)
    writer.put(3, classKey)
    writer.put(4, kind)
    writer.put(5, parameters)
    writer.put(6, facts.accessibility.code)
    writer.put(10, item)
    writer.put(11, facts.revision)
    writer.put(13, facts.access)
    bytes = writer.bytes
  }
}

/// Who may see a secret, in the form that its seal is bound to.
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
