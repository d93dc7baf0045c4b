import Foundation
import Model
import TestSupport
import Testing

@Suite struct JSONTests {
  private let codec = TextCodec()

  @Test func layoutIsThatOfJQ() throws {
    guard let jq = Self.jq else { return }
    var generator = SplitMix64(seed: 6)
    let values = (0..<400).map { _ in generator.value(depth: 4, plainJSON: true) }
    let text = try codec.text(of: .array(values))
    #expect(try Self.run(jq, ["-S", "--indent", "2", "."], on: text) == text)
  }

  @Test func everyControlCharacterIsEscapedAsJQDoes() throws {
    guard let jq = Self.jq else { return }
    let scalars = (1...0xFF).compactMap { Unicode.Scalar(UInt32($0)) }
    let text = try codec.text(
      of: .array([.string(ExactString(scalars.map(String.init).joined() + "\u{2028}/😀"))]))
    #expect(try Self.run(jq, ["-S", "--indent", "2", "."], on: text) == text)
    #expect(text.contains(#"\u0001"#) && text.contains(#"\u001f"#) && text.contains(#"\u007f"#))
  }

  @Test func namesAreOrderedByScalarAndNestingIsIndented() throws {
    let value = SettingValue.dictionary([
      "b": .array([.array([]), .dictionary([:]), .dictionary(["x": .bool(true)])]), "B": .integer(1),
      "\u{FF5E}": .real(2),
      "😀": .string("\"\\/\u{8}\u{C}\n\r\t"),
    ])
    let text = #"""
      {
        "B": 1,
        "b": [
          [],
          {},
          {
            "x": true
          }
        ],
        "～": 2.0,
        "😀": "\"\\/\b\f\n\r\t"
      }

      """#
    #expect(try codec.text(of: value) == text)
  }

  @Test func composedAndDecomposedNamesAreTwo() {
    let members = SettingValue.dictionary(["\u{E9}": .integer(1), "e\u{301}": .integer(2)])
    #expect(codec.value(of: "{\"\u{E9}\":1,\"e\u{301}\":2}", as: .dictionary) == members)
  }

  @Test(arguments: [
    ("[1]", SettingValue.integer(1)), ("[1.0]", .real(1)), ("[1e2]", .real(100)), ("[-0]", .integer(0)),
    ("[-0.0]", .real(-0.0)), ("[18446744073709551615]", .integer(.init(UInt64.max))),
    ("[\t\"\\u00e9\\uD83D\\uDE00\"\r\n]", .string("é😀")),
    ("[\"\\/\\b\\f\\n\\r\\t\\\\\\\"\"]", .string("/\u{8}\u{C}\n\r\t\\\"")), ("[1E+2]", .real(100)),
    ("[5e-324]", .real(.leastNonzeroMagnitude)),
    ("[99999999999999999999.0]", .real(1e20)), ("[\"\u{7F}\u{FFFF}\"]", .string("\u{7F}\u{FFFF}")),
    ("[{\"\":false}]", .dictionary(["": .bool(false)])),
  ])
  func elementIsRead(text: String, element: SettingValue) {
    #expect(codec.value(of: text, as: .array) == .array([element]))
  }

  @Test(arguments: [
    "[null]", "[", "]", "[1", "[1,]", "[,1]", "[1 2]", "[01]", "[+1]", "[.5]", "[5.]", "[1e]", "[-]", "[0x1]",
    "[NaN]",
    "[Infinity]", "[True]", "[truefalse]", "['a']", "[\"a]", "[\"\\u12\"]", "[\"\\ud800\"]",
    "[\"\\ud800\\u0041\"]",
    "[\"\\udc00\"]", "[\"\\a\"]", "[\"a\nb\"]", "[\"\\u0000\"]", "[18446744073709551616]",
    "[-9223372036854775809]",
    "[1e400]", "[1]]", "[1],", "[1]x", "[{\"a\"}]", "[{\"a\":}]", "[{\"a\":1,}]", "[{a:1}]",
    "[{\"a\":1 \"b\":2}]",
    "[{\"a\":1,\"\\u0061\":2}]", "[}", "[{]", "[// c\n1]", "\u{FEFF}[]",
  ])
  func whatIsNoValueIsRefused(text: String) {
    #expect(codec.value(of: text, as: .array) == nil)
  }

  @Test func whatIsHugeLaidOutCanBeMeasured() throws {
    let flat = SettingValue.array(Array(repeating: .integer(1), count: 1_000_000))
    let deep = (0..<500).reduce(flat) { value, _ in .array([value]) }
    #expect(try codec.codec.size(of: deep) > 1_000_000_000)
  }

  @Test func depthIsLimited() {
    let nested = { (depth: Int) in String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    }
    #expect(codec.value(of: nested(511), as: .array) != nil)
    #expect(codec.value(of: nested(512), as: .array) == nil)
    #expect(codec.value(of: nested(200_000), as: .array) == nil)
    #expect(codec.inferred(nested(512)).type == .string)
  }
}

extension JSONTests {
  /// nil: jq is not installed, and there is nothing to compare with.
  private static var jq: URL? {
    let path = "/usr/bin/jq"
    return FileManager.default.isExecutableFile(atPath: path) ? URL(filePath: path) : nil
  }

  private static func run(_ program: URL, _ arguments: [String], on text: String) throws -> String {
    let file = FileManager.default.temporaryDirectory.appending(path: "keyhole-jq-\(UUID().uuidString)")
    try Data(text.utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let (process, pipe) = (Process(), Pipe())
    process.executableURL = program
    process.arguments = arguments + [file.path]
    process.standardOutput = pipe
    try process.run()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return String(decoding: output, as: UTF8.self)
  }
}
