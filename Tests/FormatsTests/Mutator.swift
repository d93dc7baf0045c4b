/// Damages bytes, always the same way for the same seed.
struct Mutator {
  private var state: UInt64

  init(seed: UInt64) {
    state = seed
  }

  /// SplitMix64.
  private mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  mutating func below(_ limit: Int) -> Int { limit <= 0 ? 0 : Int(next() % UInt64(limit)) }

  private static let bytes: [UInt8] =
    Array("<>\"'&;=:,{}[]()#\\/-+ \n\r\t0179azAZ_%.".utf8) + [
      0, 1, 0x1B, 0x7F, 0x80, 0xBF, 0xC0, 0xE2, 0xED, 0xF4, 0xFF,
    ]

  /// Pieces of the formats that are known to be hard.
  private static let words = [
    "</", "/>", "</>", "<!--", "-->", "<?", "?>", "<!", "<![CDATA[", "&#", "&#0;", "&#x110000;", "&amp",
    "\\u", "\\ud800",
    "\\", "\"", "\"\"", "''", "[", "{", "]", "}", "[[[[[[[[", "null", "true", "1e999", "-", "-0", "+1",
    "\u{FEFF}", "export ",
    "=", " #", "bplist00", "5 ab=", "7 path=", "9223372036854775807", "-0000000001", "77777777777",
    "KHEXPORT",
    "<Group>", "<key>", "<Value Ref=\"0\"/>", "otpauth://", "---\n", ",\"", "\n", "\r\n",
  ].map { Array($0.utf8) }

  /// One to four changes of `bytes`, with parts of `other` now and then.
  mutating func mutated(_ bytes: [UInt8], with other: [UInt8]) -> [UInt8] {
    var bytes = bytes
    for _ in 0...below(4) { change(&bytes, other) }
    return bytes
  }

  private mutating func change(_ bytes: inout [UInt8], _ other: [UInt8]) {
    let place = below(bytes.count + 1)
    let end = min(bytes.count, place + 1 + below(below(4) == 0 ? bytes.count : 16))
    switch below(9) {
    case 0 where place < bytes.count: bytes[place] ^= 1 << UInt8(below(8))
    case 1 where place < bytes.count: bytes[place] = Self.bytes[below(Self.bytes.count)]
    case 2: bytes.removeSubrange(place..<max(place, end))
    case 3: bytes.insert(contentsOf: Array(bytes[place..<max(place, end)]), at: place)
    case 4: bytes.removeSubrange(place...)
    case 5:
      let from = below(other.count)
      bytes.insert(contentsOf: other[from..<min(other.count, from + 1 + below(64))], at: place)
    case 6:
      bytes.insert(
        contentsOf: [UInt8](repeating: Self.bytes[below(Self.bytes.count)], count: below(300)), at: place)
    case 7: bytes.replaceSubrange(place..<max(place, end), with: Self.words[below(Self.words.count)])
    default: bytes.insert(contentsOf: Self.words[below(Self.words.count)], at: place)
    }
    if bytes.count > 200_000 { bytes.removeSubrange(200_000...) }
  }
}
