import Foundation
import SecretMemory
import TestSupport
import Testing

@testable import ProgramRunning

/// The mask against a search that looks for every pattern at every place.
@Suite(.timeLimit(.minutes(2))) struct OutputMaskTests {
  private static func automaton(_ patterns: [[UInt8]]) throws -> MaskPatterns {
    var builder = try MaskPatterns.Builder()
    for pattern in patterns { try builder.add(pattern.span, .text) }
    return builder.finish()
  }

  /// Each part is one call; bytes are held back until the end.
  private static func masked(
    _ parts: [[UInt8]], _ patterns: [[UInt8]], for destination: OutputMask.Destination = .file
  ) throws -> [UInt8] {
    let mask = try OutputMask(automaton(patterns), for: destination)
    var output = try OutputBuffer()
    for part in parts { try mask.process(part.span, into: &output) }
    try mask.flush(into: &output)
    return bytes(of: output)
  }

  private static func bytes(of output: borrowing OutputBuffer) -> [UInt8] {
    output.withFirst(.max) { span in span.indices.map { span[$0] } }
  }

  /// The same by a search for one pattern and at one place after the other.
  private static func naive(_ text: [UInt8], _ patterns: [[UInt8]]) -> [UInt8] {
    var isMasked = [Bool](repeating: false, count: text.count)
    for pattern in patterns where !pattern.isEmpty && pattern.count <= text.count {
      for start in 0...text.count - pattern.count where text[start...].starts(with: pattern) {
        for index in start..<start + pattern.count { isMasked[index] = true }
      }
    }
    var output: [UInt8] = []
    for (index, byte) in text.enumerated() {
      guard isMasked[index] else {
        output.append(byte)
        continue
      }
      if index == 0 || !isMasked[index - 1] { output += Array(OutputMask.marker.utf8) }
    }
    return output
  }

  /// Of few letters, so that patterns overlap, contain and begin each other.
  private static func word(_ random: inout SplitMix64, _ lengths: ClosedRange<Int>) -> [UInt8] {
    (0..<Int.random(in: lengths, using: &random)).map { _ in UInt8.random(in: 0x61...0x62, using: &random) }
  }

  @Test func masksWhatANaiveSearchFinds() throws {
    var random = SplitMix64(seed: 1)
    for _ in 0..<2_000 {
      let patterns = (0..<Int.random(in: 1...4, using: &random)).map { _ in Self.word(&random, 1...6) }
      let text = Self.word(&random, 0...60)
      #expect(try Self.masked([text], patterns) == Self.naive(text, patterns), "\(patterns) in \(text)")
    }
  }

  @Test func splitsChangeNothing() throws {
    var random = SplitMix64(seed: 2)
    for _ in 0..<100 {
      let patterns = (0..<3).map { _ in Self.word(&random, 2...7) }
      let text = Self.word(&random, 1...40)
      let expected = Self.naive(text, patterns)
      for split in 0...text.count {
        let parts = [Array(text[..<split]), Array(text[split...])]
        #expect(try Self.masked(parts, patterns) == expected)
      }
      #expect(try Self.masked(text.map { [$0] }, patterns) == expected)
    }
  }

  @Test func holdsBackLessThanTheLongestPattern() throws {
    let mask = try OutputMask(Self.automaton([Array("abcdefgh".utf8), Array("xyz".utf8)]), for: .file)
    var output = try OutputBuffer()
    try mask.process(Array("12abcdefg".utf8).span, into: &output)
    #expect(Self.bytes(of: output) == Array("12".utf8) && mask.isHolding)
    try mask.process(Array("X".utf8).span, into: &output)
    #expect(Self.bytes(of: output) == Array("12abcdefgX".utf8) && !mask.isHolding)
  }

  @Test func restOfAnOccurrenceIsMaskedAfterAFlush() throws {
    let mask = try OutputMask(Self.automaton([Array("abcdefgh".utf8)]), for: .file)
    var output = try OutputBuffer()
    try mask.process(Array("abc".utf8).span, into: &output)
    try mask.flush(into: &output)
    try mask.process(Array("defgh.".utf8).span, into: &output)
    #expect(Self.bytes(of: output) == Array("abc\(OutputMask.marker).".utf8))
  }

  @Test(arguments: ["\u{1B}[?1049h", "\u{1B}[?47h", "\u{1B}[?1;1047h"])
  func alternateScreenIsNotMasked(begin: String) throws {
    let text = "secret12 \(begin)secret12\u{1B}[?1049lsecret12"
    let masked = "[masked] \(begin)secret12\u{1B}[?1049l[masked]"
    let patterns = [Array("secret12".utf8)]
    let bytes = Array(text.utf8)
    for split in 0...bytes.count {
      let parts = [Array(bytes[..<split]), Array(bytes[split...])]
      #expect(try Self.masked(parts, patterns, for: .terminal) == Array(masked.utf8))
    }
    // A file has no such screen: a program can't switch the mask off there.
    #expect(
      try Self.masked([bytes], patterns) == Array(text.replacing("secret12", with: "[masked]").utf8))
  }

  @Test func otherSequencesLeaveTheMaskOn() throws {
    let patterns = [Array("secret12".utf8)]
    for sequence in ["\u{1B}[1049h", "\u{1B}[?25h", "\u{1B}[?10490h", "\u{1B}[?1049", "\u{1B}[?1049h\u{1B}c"]
    {
      let bytes = Array("\(sequence)secret12".utf8)
      #expect(try Self.masked([bytes], patterns, for: .terminal) == Array("\(sequence)[masked]".utf8))
    }
  }

  /// The value at each place of the text, as base64(1), openssl(1) and xxd(1) break their lines, and in whichever parts it comes.
  @Test func digitsInLinesAreMasked() throws {
    var random = SplitMix64(seed: 9)
    let value = (0..<120).map { _ in UInt8.random(in: 0...255, using: &random) }
    var builder = try MaskPatterns.Builder()
    try builder.add(formsOf: value.span)
    let patterns = builder.finish()
    for before in [0, 1, 2, 10, 40, 56, 57, 100] {
      let all = [UInt8](repeating: 0x21, count: before) + value + [UInt8](repeating: 0x21, count: 3)
      let hex = all.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
      for (text, width) in [
        (Data(all).base64EncodedString(), 76), (Data(all).base64EncodedString(), 64), (hex, 60),
      ] {
        for end in ["\n", "\r\n"] {
          let bytes = Array(Self.wrapped(text, width, end).utf8)
          var outputs: Set<[UInt8]> = []
          for part in [bytes.count, 1, 7] {
            let mask = try OutputMask(patterns, for: .file)
            var output = try OutputBuffer()
            for start in stride(from: 0, to: bytes.count, by: part) {
              try mask.process(Array(bytes[start..<min(start + part, bytes.count)]).span, into: &output)
            }
            try mask.flush(into: &output)
            outputs.insert(Self.bytes(of: output))
          }
          let output = String(decoding: try #require(outputs.first), as: UTF8.self)
          #expect(outputs.count == 1)
          // The rest stands around it, or is a digit that it shares with that.
          let left = output.replacing("[masked]", with: "").filter { !$0.isWhitespace }
          #expect(
            output.contains("[masked]") && left.count <= text.count * (before + 3) / all.count + 6,
            "\(output)")
        }
      }
    }
  }

  private static func wrapped(_ text: String, _ width: Int, _ end: String) -> String {
    let bytes = Array(text.utf8)
    return stride(from: 0, to: bytes.count, by: width).map { start in
      String(decoding: bytes[start..<min(start + width, bytes.count)], as: UTF8.self)
    }.joined(separator: end)
  }

  /// Empty lines and short ones end it: nothing is held back for long.
  @Test func otherLinesAreNotPassedOver() throws {
    var builder = try MaskPatterns.Builder()
    try builder.add(Array("0123456789abcdefghij".utf8).span, .digits)
    let patterns = builder.finish()
    let mask = try OutputMask(patterns, for: .file)
    var output = try OutputBuffer()
    let text = "0123456789abcdef\n\nghij 0123\n456789abcdefghij"
    try mask.process(Array(text.utf8).span, into: &output)
    #expect(Self.bytes(of: output) == Array(text.utf8) && !mask.isHolding)
  }

  @Test func bufferKeepsTheOrderOfWhatWaits() throws {
    let mask = try OutputMask(Self.automaton([[0]]), for: .file)
    var output = try OutputBuffer()
    var random = SplitMix64(seed: 3)
    var (sent, received): ([UInt8], [UInt8]) = ([], [])
    for _ in 0..<200 {
      let part = (0..<Int.random(in: 0...3_000, using: &random)).map { _ in
        UInt8.random(in: 1...255, using: &random)
      }
      sent += part
      try mask.process(part.span, into: &output)
      let count = Int.random(in: 0...3_000, using: &random)
      received += output.withFirst(count) { span in span.indices.map { span[$0] } }
      output.drop(count)
    }
    #expect(received + Self.bytes(of: output) == sent)
  }
}
