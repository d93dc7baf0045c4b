public import Model

/// One value of each kind, and those that get lost most easily.
public enum SettingSamples {
  public static let all: [ExactString: SettingValue] = {
    var all: [ExactString: SettingValue] = [
      "": .string("the empty key"), "true": .bool(true), "false": .bool(false),
      "bytes": .data((0...255).map { UInt8($0) }), "no bytes": .data([]), "one byte": .data([7]),
      "a/b %": .string("odd"), "e\u{301}": .integer(1), "é": .integer(2),
      "<&>\"']]>": .integer(3), "😀": .uid(5),
      "nested": .array([.dictionary(["a": .array([]), "b": .dictionary([:])]), .data([1]), .date(-1)]),
    ]
    let integers: [Int128] = [0, -1, 1, 255, 256, -128, 65536, 1 << 32, Int128(Int64.max), Int128(Int64.min)]
    for value in integers + [1 << 63, Int128(UInt64.max)] { all[ExactString("i\(value)")] = .integer(value) }
    let reals: [Double] = [
      0, -0.0, 0.1, 3, 1e22, .leastNonzeroMagnitude, .pi, .infinity, -.infinity, .nan, 1e15, 1e16,
    ]
    for value in reals + [-.greatestFiniteMagnitude] { all[ExactString("r\(value)")] = .real(value) }
    let dates: [Int64] = [0, 1, -1, 978_307_200, 4_102_444_800, 253_402_300_799, -62_135_596_800]
    for value in dates {
      all[ExactString("d\(value)")] = .date(SettingDate(seconds: value))
    }
    let strings = ["", " ", "\n", " x ", "a\r\nb\rc", "\t", "e\u{301}", "é", "😀\u{200D}👍🏽"]
    for (index, value) in (strings + ["x\u{FEFF}", "]]>", "&amp;<b>'\"", "\u{7F}\u{80}\u{2028}"]).enumerated()
    {
      all[ExactString("s\(index)")] = .string(ExactString(value))
    }
    return all
  }()

  /// Strings that XML 1.0 has no way to write, or that Foundation does not read from it.
  public static let unwritable: [ExactString: SettingValue] = [
    "control": .string("\u{1}\u{8}\u{B}\u{1F}"), "nul": .string("a\0b"), "key\u{2}": .bool(true),
    "last": .string("\u{FFFE}\u{FFFF}"), "mark": .string("\u{FEFF}x"),
    "deep": .array([.string("\u{1B}[0m"), .integer(-1), .integer(1 << 63)]),
  ]
}
