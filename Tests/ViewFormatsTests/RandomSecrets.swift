import TestSupport

/// Values of the kinds that readers get wrong: bytes, quotes and backslashes, escapes, Unicode's blanks, plain passwords.
struct RandomSecrets {
  private var generator: SplitMix64
  private static let pieces = [
    "a", "b", "x y", "${", "}", "${HOME}", "$", "$$", "\\n", "\\", "\\\\", "'", "\"", "`", "\n", "\r\n", "\r",
    "\t", " ", "#",
    " #", ";", " ;", "{{", "}}", "=", ":", "~", "!", "*", "\\$", "\\'", "é", "\u{A0}", "\u{2028}", "\u{FEFF}",
    "\u{1F600}", "%2F",
    "\\u0041", "//", "[]",
  ].map { Array($0.utf8) }
  private static let harmless = Array("abcXYZ019_-./:@%+,=~!*?[]&;|<>()^".utf8)

  init(seed: UInt64) {
    generator = SplitMix64(seed: seed)
  }

  mutating func below(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &generator) }

  mutating func next() -> [UInt8] {
    let count = [0, 1, 2, 3, 5, 8, 13, 30][below(8)]
    switch below(4) {
    case 0: return (0..<count).map { _ in UInt8(1 + below(255)) }
    case 1: return (0..<count).flatMap { _ in Self.pieces[below(Self.pieces.count)] }
    case 2: return (0..<count).map { _ in Self.harmless[below(Self.harmless.count)] }
    default: return (0..<count).map { _ in UInt8(0x20 + below(0x5F)) }
    }
  }
}
