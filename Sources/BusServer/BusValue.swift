package import SecretMemory

/// A value of D-Bus, as far as interfaces of this program have such values.
package indirect enum BusValue: Sendable {
  case bool(Bool)
  case byte(UInt8)
  case int32(Int32)
  case uint32(UInt32)
  case uint64(UInt64)
  case string(String)
  case path(String)
  /// An array of bytes, which may be a secret.
  case bytes(BusBytes)
  /// An array of bytes that are no secret, to be sent.
  case ordinaryBytes([UInt8])
  /// `of`: the signature of an element.
  case array([BusValue], of: String)
  /// An entry of a dictionary.
  case entry(BusValue, BusValue)
  case structure([BusValue])
  case variant(BusValue)
  /// The number of a descriptor, which is the message's: it is closed with that.
  case descriptor(Int32)
  /// A number of another type, which is not used.
  case other

  /// The type, as signatures of D-Bus have it.
  package var signature: String {
    switch self {
    case .bool: "b"
    case .byte: "y"
    case .int32: "i"
    case .uint32: "u"
    case .uint64: "t"
    case .string: "s"
    case .path: "o"
    case .bytes, .ordinaryBytes: "ay"
    case .array(_, let element): "a" + element
    case .entry(let key, let value): "{\(key.signature)\(value.signature)}"
    case .structure(let members): "(\(members.map(\.signature).joined()))"
    case .variant: "v"
    case .descriptor, .other: "h"
    }
  }
}

/// The bytes of an array in memory for secrets. Nothing changes them.
package final class BusBytes: Sendable {
  /// The bytes.
  package let secret: SecretBytes

  /// Takes over the bytes.
  package init(_ secret: consuming SecretBytes) {
    self.secret = secret
  }
}

extension BusValue {
  /// An array of object paths.
  package static func paths(_ paths: [String]) -> BusValue { .array(paths.map { .path($0) }, of: "o") }

  /// A dictionary of strings.
  package static func strings(_ entries: [(String, String)]) -> BusValue {
    .array(entries.map { .entry(.string($0), .string($1)) }, of: "{ss}")
  }

  /// A dictionary of properties.
  package static func properties(_ entries: [(String, BusValue)]) -> BusValue {
    .array(entries.map { .entry(.string($0), .variant($1)) }, of: "{sv}")
  }

  /// nil: it is no string.
  package var text: String? { if case .string(let text) = self { text } else { nil } }

  /// nil: it is no object path.
  package var path: String? { if case .path(let path) = self { path } else { nil } }

  /// Empty: it is no array.
  package var elements: [BusValue] { if case .array(let elements, _) = self { elements } else { [] } }

  /// The members of a structure; empty: it is none.
  package var members: [BusValue] { if case .structure(let members) = self { members } else { [] } }

  /// nil: it is no array of bytes.
  package var bytes: BusBytes? { if case .bytes(let bytes) = self { bytes } else { nil } }

  /// The value in a variant, else itself.
  package var content: BusValue { if case .variant(let content) = self { content } else { self } }

  /// The object paths of an array; nil: it is another one.
  package var pathList: [String]? {
    guard case .array(let elements, of: "o") = self else { return nil }
    return elements.compactMap(\.path)
  }

  /// The entries of a dictionary of strings; nil: it is none. An empty one may have any type.
  package var stringEntries: [(String, String)]? {
    guard case .array(let elements, of: "{ss}") = self else { return nil }
    return elements.compactMap { element in
      guard case .entry(.string(let key), .string(let value)) = element else { return nil }
      return (key, value)
    }
  }

  /// The entries of a dictionary with variants, without these.
  package var propertyEntries: [(String, BusValue)] {
    elements.compactMap { element in
      guard case .entry(.string(let key), let value) = element else { return nil }
      return (key, value.content)
    }
  }
}
