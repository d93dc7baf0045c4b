import Platform
import SecretMemory

/// A value that stands in the text of a view beside its place: in a comment, a key or a section's name.
///
/// Looked for are values
/// - of 12 bytes or more: anywhere in the text;
/// - of 8 bytes or more that are no plain word or number, that is, that have characters of two of the kinds lower-case letters,
///   upper-case letters, digits and all others: anywhere in the text;
/// - of 6 bytes or more, whatever they are: as the whole value of a line that a comment has made of the same entry,
///   such as `# PASSWORD=hunter`.
///
/// In the first two cases they are also found in another quoting, as quotes and backslashes are passed over, and of a value of several
/// lines each line of 12 bytes or more that has two of the kinds, but for those that begin with `-----`, as in PEM.
///
/// A shorter value can be found by trying, and `true` or `5432` would be found in any text.
public struct ViewExposure: Hashable, Sendable {
  /// The line of the text, counted from 1. Values count as if each had one line.
  public let line: Int
  /// The name path of the entry whose value it is.
  public let name: [String]

  /// `EINVAL`, for the close(2) of a write.
  public var error: ViewError {
    ViewError(
      .EINVAL, line: line, entry: name,
      "its value stands in a comment, a key or a section's name, where no rule protects it; remove it there")
  }

  static let shortest = 6
  static let shortestAnywhere = 8
  static let shortestWordAnywhere = 12
}

extension ViewTemplate {
  /// The values of its slots that stand in its text, at most one for each slot.
  ///
  /// - Throws: errors of `lender`; `ENOMEM`.
  public func exposures(_ lender: Lender) throws(ViewError) -> [ViewExposure] {
    try exposures(of: slots, lender)
  }

  /// The same for the values of other slots, of the view as it was before.
  func exposures(of slots: [ViewSlot], _ lender: Lender) throws(ViewError) -> [ViewExposure] {
    guard text.count >= ViewExposure.shortest else { return [] }
    let places = TextIndex(text)
    let bare = try BareText(text)
    var exposures: [ViewExposure] = []
    // The value of this key of the aws CLI is the name of a section.
    for slot in slots where format != .ini || slot.name.last != "source_profile" {
      try lender(slot) { (value) throws(ViewError) in
        if let offset = try offset(of: value, slot, places, bare) {
          exposures.append(ViewExposure(line: text.line(at: offset), name: slot.name))
        }
      }
    }
    return exposures
  }

  /// Where the value, or a line of it, stands in the text: as it is, as the format writes it, or in another quoting.
  private func offset(
    of value: Span<UInt8>, _ slot: ViewSlot, _ places: borrowing TextIndex, _ bare: borrowing BareText
  ) throws(ViewError) -> Int? {
    guard value.count >= ViewExposure.shortest else { return nil }
    let isAnywhere = value.isLookedForAnywhere
    let key = Array((slot.name.last ?? "").utf8)
    func match(_ candidate: Span<UInt8>, _ places: borrowing TextIndex) -> Int? {
      places.offset(of: candidate, in: text) { offset in
        isAnywhere || text.isValue(at: offset..<offset &+ candidate.count, of: key)
      }
    }
    if let offset = match(value, places) { return offset }
    var writer = try SecretWriter(capacity: value.count &+ 16)
    if try format.codec(dialect).write(value, slot.style, to: &writer) == nil {
      let written = writer.finish()
      if !written.hasSameBytes(as: value), let offset = match(written.span, places) { return offset }
    }
    guard isAnywhere else { return nil }
    if let offset = try bare.offset(of: value) { return offset }
    var start = 0
    for index in 0...value.count where index == value.count || value[index] == 0x0A || value[index] == 0x0D {
      let line = value.extracting(start..<index)
      start = index &+ 1
      guard line.count >= ViewExposure.shortestWordAnywhere, line.count < value.count, line.hasTwoKinds,
        !line.starts(with: "-----")
      else { continue }
      if let offset = try bare.offset(of: line) { return offset }
    }
    return nil
  }
}

/// A text without quotes and backslashes.
private struct BareText: ~Copyable {
  private let text: SecretBytes
  private let places: TextIndex
  /// Where each byte of it stands in the whole text.
  private let offsets: [Int32]

  init(_ whole: borrowing SecretBytes) throws(ViewError) {
    let bytes = whole.span
    var offsets: [Int32] = []
    for index in bytes.indices where !bytes[index].isQuoting {
      offsets.append(Int32(truncatingIfNeeded: index))
    }
    text = try Self.bare(bytes).finish()
    places = TextIndex(text)
    self.offsets = offsets
  }

  private static func bare(_ bytes: Span<UInt8>) throws(ViewError) -> SecretWriter {
    var writer = try SecretWriter(capacity: bytes.count)
    for index in bytes.indices where !bytes[index].isQuoting { try writer.append(bytes[index]) }
    return writer
  }

  /// The place in the whole text; nil: without quotes and backslashes the value is too short to be looked for, or is not there.
  borrowing func offset(of value: Span<UInt8>) throws(ViewError) -> Int? {
    let value = try Self.bare(value).finish()
    guard value.span.isLookedForAnywhere else { return nil }
    return places.offset(of: value.span, in: text) { _ in true }.map { Int(offsets[$0]) }
  }
}

extension UInt8 {
  fileprivate var isQuoting: Bool {
    self == UInt8(ascii: "\"") || self == UInt8(ascii: "'") || self == UInt8(ascii: "\\")
  }
}

/// Where in a text four bytes stand, by a hash of them that is another one in each process.
private struct TextIndex: ~Copyable {
  private static let buckets = 1 << 12
  private var first = [Int32](repeating: -1, count: buckets)
  private var next: [Int32] = []

  init(_ text: borrowing SecretBytes) {
    let bytes = text.span
    guard bytes.count >= 4 else { return }
    next = [Int32](repeating: -1, count: bytes.count)
    for index in stride(from: bytes.count &- 4, through: 0, by: -1) {
      let bucket = Self.bucket(bytes, index)
      next[index] = first[bucket]
      first[bucket] = Int32(truncatingIfNeeded: index)
    }
  }

  private static func bucket(_ bytes: Span<UInt8>, _ index: Int) -> Int {
    var hasher = Hasher()
    hasher.combine(bytes: bytes.extracting(index..<index &+ 4))
    return hasher.finalize() & (buckets &- 1)
  }

  /// The first place of `value`, of at least four bytes, that `isMeant`.
  borrowing func offset(
    of value: Span<UInt8>, in text: borrowing SecretBytes, _ isMeant: (Int) -> Bool
  ) -> Int? {
    var place = first[Self.bucket(value, 0)]
    let bytes = text.span
    while place >= 0 {
      let offset = Int(place)
      if value.count <= bytes.count &- offset,
        bytes.extracting(offset..<offset &+ value.count).hasSameBytes(as: value), isMeant(offset)
      {
        return offset
      }
      place = next[offset]
    }
    return nil
  }
}

extension Span<UInt8> {
  fileprivate var isLookedForAnywhere: Bool {
    count >= ViewExposure.shortestWordAnywhere || count >= ViewExposure.shortestAnywhere && hasTwoKinds
  }

  /// Characters of two of: lower-case letters, upper-case letters, digits, all others.
  fileprivate var hasTwoKinds: Bool {
    var kinds: UInt8 = 0
    for index in indices {
      switch self[index] {
      case 0x61...0x7A: kinds |= 1
      case 0x41...0x5A: kinds |= 2
      case 0x30...0x39: kinds |= 4
      default: kinds |= 8
      }
    }
    return kinds & (kinds &- 1) != 0
  }
}

extension SecretBytes {
  fileprivate borrowing func line(at offset: Int) -> Int {
    let bytes = span
    return (0..<offset).reduce(1) { $0 &+ (bytes[$1] == 0x0A ? 1 : 0) }
  }

  /// Whether a part of a line is all that stands behind `KEY=` or `KEY:`, quotes aside.
  fileprivate borrowing func isValue(at range: Range<Int>, of key: [UInt8]) -> Bool {
    let bytes = span
    let passed: (UInt8) -> Bool = { $0.isBlank || $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "'") }
    var end = range.upperBound
    while end < bytes.count, passed(bytes[end]) || bytes[end] == 0x0D { end &+= 1 }
    guard end == bytes.count || bytes[end] == 0x0A || bytes[end] == UInt8(ascii: ",") else { return false }
    var start = range.lowerBound
    while start > 0, passed(bytes[start &- 1]) { start &-= 1 }
    guard start > 0, bytes[start &- 1] == UInt8(ascii: "=") || bytes[start &- 1] == UInt8(ascii: ":") else {
      return false
    }
    start &-= 1
    while start > 0, passed(bytes[start &- 1]) { start &-= 1 }
    guard start >= key.count else { return false }
    return bytes.extracting(start &- key.count..<start).hasSameBytes(as: key.span)
  }
}
