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
  package enum Collection: Hashable, Sendable {
    /// The keychain, but for the items of further collections.
    case login
    /// In memory, until the service ends.
    case session
    /// One that a client has made. The text is its name: letters, digits and `_`.
    case further(String)
  }

  /// The path of the service.
  package static let root = "/org/freedesktop/secrets"

  /// nil: no object of the service has such a path.
  ///
  /// - Parameters:
  ///   - path: as D-Bus has it. Whether a further collection, an item, a session or a prompt exists is not looked at.
  ///   - aliases: the collections that the paths below `aliases/` mean.
  package init?(path: String, aliases: [String: Collection] = Collection.standardAliases) {
    guard path.hasPrefix(Self.root) else { return nil }
    let words = path.dropFirst(Self.root.count).split(separator: "/", omittingEmptySubsequences: false)
      .map(String.init)
    switch (words.count, words.first == "" || words.isEmpty) {
    case (1, true) where path == Self.root: self = .service
    case (3, true):
      guard let object = Self.child(words[1], words[2], aliases) else { return nil }
      self = object
    case (4, true):
      guard case .collection(let collection)? = Self.child(words[1], words[2], aliases), !words[3].isEmpty
      else {
        return nil
      }
      self = .item(collection, words[3])
    default: return nil
    }
  }

  private static func child(
    _ kind: String, _ name: String, _ aliases: [String: Collection]
  ) -> ServiceObject? {
    switch kind {
    case "collection": Collection(name: name).map { .collection($0) }
    case "aliases": aliases[name].map { .collection($0) }
    case "session": UInt64(name).map { .session($0) }
    case "prompt": UInt64(name).map { .prompt($0) }
    default: nil
    }
  }

  /// The path on the bus.
  package var path: String {
    switch self {
    case .service: Self.root
    case .collection(let collection): "\(Self.root)/collection/\(collection.name)"
    case .item(let collection, let name): "\(Self.root)/collection/\(collection.name)/\(name)"
    case .session(let number): "\(Self.root)/session/\(number)"
    case .prompt(let number): "\(Self.root)/prompt/\(number)"
    }
  }
}

extension ServiceObject.Collection {
  /// The aliases of a service whose clients have set none. `login` and `session` are always these.
  package static let standardAliases: [String: Self] = [
    "default": .login, "login": .login, "session": .session,
  ]

  /// The length of a name, in bytes.
  package static let longestName = 64

  /// The last element of its path.
  package var name: String {
    switch self {
    case .login: "login"
    case .session: "session"
    case .further(let name): name
    }
  }

  /// nil: no collection can have this name. Whether it exists is not looked at.
  package init?(name: String) {
    switch name {
    case "login": self = .login
    case "session": self = .session
    default:
      guard Self.isName(name) else { return nil }
      self = .further(name)
    }
  }

  /// Whether a text can be the name of a collection, or an alias: letters, digits and `_`.
  package static func isName(_ text: String) -> Bool {
    (1...longestName).contains(text.utf8.count) && text.utf8.allSatisfy(isAllowed)
  }

  /// The name that a collection with this label gets, where no other one has it.
  ///
  /// Bytes that a path can't have are `_`, at most one at a time.
  package static func name(forLabel label: String) -> String {
    var name: [UInt8] = []
    for byte in label.utf8 {
      let next = isAllowed(byte) ? byte : UInt8(ascii: "_")
      if next != UInt8(ascii: "_") || name.last != next { name.append(next) }
    }
    // Room for a number.
    let text = String(decoding: name.prefix(longestName - 8), as: UTF8.self)
    return text.isEmpty || text == "_" ? "collection" : text
  }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
      true
    default: false
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
