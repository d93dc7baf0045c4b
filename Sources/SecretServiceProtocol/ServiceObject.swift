/// An object of the Secret Service API, as its path on the bus names it.
package enum ServiceObject: Hashable, Sendable {
  /// `/org/freedesktop/secrets`.
  case service
  case collection(Collection)
  /// The text is that of `ServiceObject.element(of:)`.
  case item(Collection, String)
  case session(UInt64)
  case prompt(UInt64)

  /// The collections of this service.
  package enum Collection: String, Sendable {
    /// The keychain.
    case login
    /// In memory, until the service ends.
    case session
  }

  /// The path of the service.
  package static let root = "/org/freedesktop/secrets"

  /// nil: no object of the service has such a path. The aliases of collections are taken too.
  package init?(path: String) {
    guard path.hasPrefix(Self.root) else { return nil }
    let words = path.dropFirst(Self.root.count).split(separator: "/", omittingEmptySubsequences: false)
      .map(String.init)
    switch (words.count, words.first == "" || words.isEmpty) {
    case (1, true) where path == Self.root: self = .service
    case (3, true):
      guard let object = Self.child(words[1], words[2]) else { return nil }
      self = object
    case (4, true):
      guard case .collection(let collection)? = Self.child(words[1], words[2]), !words[3].isEmpty else {
        return nil
      }
      self = .item(collection, words[3])
    default: return nil
    }
  }

  private static func child(_ kind: String, _ name: String) -> ServiceObject? {
    switch kind {
    case "collection": Collection(rawValue: name).map { .collection($0) }
    case "aliases": Collection(alias: name).map { .collection($0) }
    case "session": UInt64(name).map { .session($0) }
    case "prompt": UInt64(name).map { .prompt($0) }
    default: nil
    }
  }

  /// The path on the bus.
  package var path: String {
    switch self {
    case .service: Self.root
    case .collection(let collection): "\(Self.root)/collection/\(collection.rawValue)"
    case .item(let collection, let name): "\(Self.root)/collection/\(collection.rawValue)/\(name)"
    case .session(let number): "\(Self.root)/session/\(number)"
    case .prompt(let number): "\(Self.root)/prompt/\(number)"
    }
  }
}

extension ServiceObject.Collection {
  /// The collection of an alias; nil: there is none.
  package init?(alias: String) {
    switch alias {
    case "default", "login": self = .login
    case "session": self = .session
    default: return nil
    }
  }
}

extension ServiceObject {
  /// The letter before the two hexadecimal digits of a byte that a path can't have.
  private static let escape = UInt8(ascii: "z")

  /// A keychain's name for an item as an element of a path, which has letters, digits and `_` only.
  ///
  /// A vault's names are UUIDs: `-` is `_`. Other bytes, and `z` itself, are `z` and two hexadecimal digits.
  package static func element(of name: String) -> String {
    var element = ""
    for byte in name.utf8 {
      switch byte {
      case UInt8(ascii: "-"): element += "_"
      case UInt8(ascii: "a")..<escape, UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        element.unicodeScalars.append(Unicode.Scalar(byte))
      default: element += "z" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
      }
    }
    return element
  }

  /// The name that ``element(of:)`` has made an element of; nil: of none.
  package static func name(ofElement element: String) -> String? {
    var (bytes, rest) = ([UInt8](), Array(element.utf8)[...])
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "_"): bytes.append(UInt8(ascii: "-"))
      case escape:
        guard let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else {
          return nil
        }
        bytes.append(value)
        rest = rest.dropFirst(2)
      default: bytes.append(byte)
      }
    }
    // Each name has one element.
    guard let name = String(validating: bytes, as: UTF8.self), Self.element(of: name) == element else {
      return nil
    }
    return name
  }
}
