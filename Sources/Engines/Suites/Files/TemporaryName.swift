import Model
import Platform
import Store

/// The name of a file that belongs to a suite's, and when.
struct TemporaryName {
  private static let prefix = ".keyhole-"
  private static let ending = ".tmp"

  /// The prefix of all names of a suite's file.
  let stem: String
  /// The moment of the commit that made it.
  private var time: Timestamp

  init(of target: String, at time: Timestamp) {
    let slash = target.utf8.lastIndex(of: UInt8(ascii: "/")).map { target.utf8.index(after: $0) }
    let file = target.utf8[(slash ?? target.startIndex)...]
    let hash = String(StableHash.of(Array(file).span), radix: 36)
    (stem, self.time) = (Self.prefix + hash + "-", time)
  }

  /// The last whole second whose nanoseconds since 1970 fit into 64 bits, in the year 2554. A clock beyond it gives
  /// names of this moment; `avoid` tells them apart.
  private static let lastSecond = UInt64.max / 1_000_000_000 - 1

  var text: String {
    let seconds = min(UInt64(clamping: time.seconds), Self.lastSecond)
    let nanoseconds = seconds * 1_000_000_000 + UInt64(min(time.nanoseconds, 999_999_999))
    return stem + String(nanoseconds, radix: 36) + Self.ending
  }

  /// Another name, of nearly the same moment: this one is taken.
  mutating func avoid() {
    time.nanoseconds = time.nanoseconds >= 999_999_999 ? 0 : time.nanoseconds + 1
  }

  /// The moment that a name of this stem tells; nil: it is no such name.
  func time(in name: String) -> Timestamp? {
    guard name.hasPrefix(stem), name.hasSuffix(Self.ending) else { return nil }
    guard let number = UInt64(name.dropFirst(stem.count).dropLast(Self.ending.count), radix: 36) else {
      return nil
    }
    let (seconds, nanoseconds) = number.quotientAndRemainder(dividingBy: 1_000_000_000)
    return Timestamp(seconds: Int64(seconds), nanoseconds: UInt32(nanoseconds))
  }

  /// Any suite's.
  static func isTemporary(_ name: String) -> Bool {
    name.hasPrefix(prefix) && name.hasSuffix(ending)
  }
}
