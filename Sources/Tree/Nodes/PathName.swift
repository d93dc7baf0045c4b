public import Model
import Platform

/// A name as it stands in a path: percent-encoded, at most 255 bytes (SPECIFICATION.md, section 2).
///
/// Escaped are `/`, `%`, U+0000 to U+001F, U+007F and a leading `.`; the empty name is `%`. Since `%` is
/// always escaped, no plain name looks like a cut one, which ends in `%~` and 16 hexadecimal digits.
/// Equality and order are those of the bytes.
public struct PathName: Sendable {
  /// The level of a name: the last one of an internet password has parts, split by `;`.
  public enum Level: Sendable {
    case plain
    case internetLeaf
  }

  /// NAME_MAX, in bytes.
  public static let maximumLength = 255

  /// The name as the kernel sees it.
  public let string: String

  /// The path name of a name of the store; cut where it is longer than 255 bytes.
  public init(_ plain: ExactString) {
    self.init(encoded: PathNameCoding.encode(plain), of: plain)
  }

  /// A name that something new gets.
  ///
  /// - Throws: `notUnicode`, `nameTooLong`, and `invalidName` for what is no canonical encoding: EINVAL.
  public init(
    creating bytes: some Collection<UInt8>, level: Level = .plain
  ) throws(StoreError) {
    let string = try Self.text(of: bytes)
    guard PathNameCoding.isCanonical(string, at: level) else {
      throw .invalidName(
        reason:
          "it is not encoded as Keyhole does: `%2F` is a slash, `%25` a percent sign, `%2E` a dot at the beginning, `%0A` a line feed"
      )
    }
    self.init(unchecked: string)
  }

  /// A name to look for; cut and disambiguated names are names here.
  ///
  /// - Throws: `notUnicode`, `nameTooLong`, and `notFound` for what can't be the name of anything.
  public init(
    lookingUp bytes: some Collection<UInt8>, level: Level = .plain
  ) throws(StoreError) {
    let string = try Self.text(of: bytes)
    guard PathNameCoding.isCanonical(string, at: level) || PathNameCoding.hasDigest(string) else {
      throw .notFound
    }
    self.init(unchecked: string)
  }

  /// For what was encoded or checked before.
  init(unchecked string: String) {
    self.string = string
  }
}

extension PathName {
  /// Whether only the store's own listing can tell which name this is.
  public var hasDigest: Bool { PathNameCoding.hasDigest(string) }

  /// The name that is encoded; nil: a cut or disambiguated one, which only the store's own listing can tell.
  ///
  /// The last level of an internet password is several names in one: `ItemIdentity` reads it.
  public var plain: ExactString? {
    guard string.utf8.span.firstOffset(of: PathNameCoding.percent) != nil else { return ExactString(string) }
    return hasDigest ? nil : PathNameCoding.decode(string.utf8)
  }

  /// The name that a duplicate gets: this one, `%~`, and the digest of the item's own name in its keychain.
  public func disambiguated(by id: ItemID) -> PathName {
    let suffix = PathNameCoding.digest(ExactString(id.rawValue))
    guard hasDigest || string.utf8.count + suffix.utf8.count > Self.maximumLength else {
      return PathName(unchecked: string + suffix)
    }
    let stem = hasDigest ? String(decoding: string.utf8.dropLast(suffix.utf8.count), as: UTF8.self) : string
    return PathName(unchecked: PathNameCoding.cut(stem) + suffix)
  }

  /// A name whose encoding is known; the digest of a cut one is that of `plain`.
  init(encoded: String, of plain: @autoclosure () -> ExactString) {
    guard encoded.utf8.count > Self.maximumLength else {
      self.init(unchecked: encoded)
      return
    }
    self.init(unchecked: PathNameCoding.cut(encoded) + PathNameCoding.digest(plain()))
  }

  /// That it is no UTF-8 goes before its length: the kernel lets through names of up to 1,024 bytes.
  private static func text(of bytes: some Collection<UInt8>) throws(StoreError) -> String {
    guard let string = ExactString(utf8: bytes)?.string else { throw .notUnicode }
    guard string.utf8.count <= maximumLength else { throw .nameTooLong }
    return string
  }
}

extension PathName: Hashable {
  /// Compares the bytes.
  public static func == (left: PathName, right: PathName) -> Bool {
    ExactString(left.string) == ExactString(right.string)
  }

  /// Hashes the bytes.
  public func hash(into hasher: inout Hasher) {
    ExactString(string).hash(into: &hasher)
  }
}

extension PathName: Comparable {
  /// Compares the bytes, whatever the locale.
  public static func < (left: PathName, right: PathName) -> Bool {
    ExactString(left.string) < ExactString(right.string)
  }
}

extension PathName: CustomStringConvertible {
  /// The name as it stands in the path, percent-encoded.
  public var description: String { string }
}
