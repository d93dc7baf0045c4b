import Foundation
import SecretMemory
import TestSupport
import Testing

@testable import ProgramRunning

/// The forms of a value against the encoders of Foundation, and Python's and Go's as their documents say.
@Suite struct SecretPatternsTests {
  private static func patterns(of value: [UInt8]) throws -> Set<[UInt8]> {
    var found: Set<[UInt8]> = []
    try SecretPatterns.forEach(of: value.span) { span, _ throws(SecretMemoryError) in
      found.insert(span.indices.map { span[$0] })
    }
    return found
  }

  private static func isFound(_ value: [UInt8], in text: String) throws -> Bool {
    let bytes = Array(text.utf8)
    return try patterns(of: value).contains { pattern in
      bytes.count >= pattern.count
        && (0...bytes.count - pattern.count).contains { bytes[$0...].starts(with: pattern) }
    }
  }

  private static func random(_ random: inout SplitMix64, _ bytes: ClosedRange<UInt8> = 0...255) -> [UInt8] {
    (0..<Int.random(in: 8...40, using: &random)).map { _ in UInt8.random(in: bytes, using: &random) }
  }

  @Test func base64IsFoundWhateverStandsAround() throws {
    var random = SplitMix64(seed: 4)
    for _ in 0..<300 {
      let value = Self.random(&random)
      for (before, after) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 5), (8, 0)] {
        let bytes = (0..<before).map { _ in UInt8(7) } + value + (0..<after).map { _ in UInt8(9) }
        let text = Data(bytes).base64EncodedString()
        #expect(try Self.isFound(value, in: text))
        #expect(
          try Self.isFound(value, in: text.replacing("+", with: "-").replacing("/", with: "_")))
      }
      // Alone, nothing of it is left.
      let alone = Data(value).base64EncodedString().filter { $0 != "=" }
      #expect(try Self.patterns(of: value).contains(Array(alone.utf8)))
    }
  }

  @Test func hexadecimalDigitsAreFound() throws {
    let value = Array("pass wörd".utf8)
    let digits = value.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    #expect(try Self.isFound(value, in: digits))
    #expect(try Self.isFound(value, in: digits.uppercased()))
  }

  @Test func urlEscapesAreFound() throws {
    var random = SplitMix64(seed: 5)
    let unreserved = CharacterSet(
      charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
    for _ in 0..<300 {
      let value = Self.random(&random, 0x20...0x7E)
      let text = String(decoding: value, as: UTF8.self)
      for kept in ["", "/", "!*'()"] {
        let allowed = unreserved.union(CharacterSet(charactersIn: kept))
        let escaped = try #require(text.addingPercentEncoding(withAllowedCharacters: allowed))
        #expect(try Self.patterns(of: value).contains(Array(escaped.utf8)))
        if kept.isEmpty {
          #expect(try Self.patterns(of: value).contains(Array(escaped.replacing("%20", with: "+").utf8)))
        }
      }
    }
  }

  @Test func jsonStringsAreFound() throws {
    var random = SplitMix64(seed: 6)
    let letters = Array("aB3\"\\/\n\t\r\u{8}\u{C}\u{1}<>&é€😀\u{7F}".unicodeScalars)
    for _ in 0..<300 {
      var text = ""
      for _ in 0..<20 { text.unicodeScalars.append(try #require(letters.randomElement(using: &random))) }
      for options in [JSONEncoder.OutputFormatting(), .withoutEscapingSlashes] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = options
        let json = String(decoding: try encoder.encode([text]), as: UTF8.self)
        #expect(try Self.patterns(of: Array(text.utf8)).contains(Array(json.dropFirst(2).dropLast(2).utf8)))
      }
    }
  }

  /// `json.dumps("é😀<&\"12345")`, and `json.Marshal` of Go.
  @Test func jsonOfPythonAndGoIsFound() throws {
    let value = Array("é😀<&\"12345".utf8)
    #expect(try Self.patterns(of: value).contains(Array(#"\u00e9\ud83d\ude00<&\"12345"#.utf8)))
    #expect(try Self.patterns(of: value).contains(Array(#"é😀\u003c\u0026\"12345"#.utf8)))
  }

  @Test func linesOfATerminalAreFound() throws {
    #expect(try Self.patterns(of: Array("one\ntwo\n1".utf8)).contains(Array("one\r\ntwo\r\n1".utf8)))
  }

  /// Of a value of several lines each is a form, without blanks at its ends, unless it is short.
  @Test func linesAreForms() throws {
    let patterns = try Self.patterns(
      of: Array("-----BEGIN KEY-----\r\n  indented line\nshort\n\nlast one".utf8))
    for line in ["-----BEGIN KEY-----", "indented line", "last one"] {
      #expect(patterns.contains(Array(line.utf8)), "\(line)")
    }
    #expect(!patterns.contains(Array("short".utf8)))
    #expect(try Self.patterns(of: Array("hunter2-hunter\n".utf8)).contains(Array("hunter2-hunter".utf8)))
  }

  @Test func everyFormIsLongEnoughNotToBeFoundByChance() throws {
    var random = SplitMix64(seed: 7)
    for _ in 0..<300 {
      let shortest = try Self.patterns(of: Self.random(&random)).map(\.count).min()
      #expect(try #require(shortest) >= SecretPatterns.shortest)
    }
  }
}
