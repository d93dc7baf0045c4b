import Model
import SecretMemory
import StoreConformance
import Testing

@testable import VaultRecords

@Suite(.timeLimit(.minutes(1))) struct RecoveryCodeTests {
  private static func bytes(_ secret: SlotSecret) -> [UInt8] { KeychainSamples.bytes(secret.bytes) }

  private static func text(_ code: SlotSecret) throws -> String {
    String(decoding: KeychainSamples.bytes(try RecoveryCode.text(of: code)), as: UTF8.self)
  }

  private static func parse(_ text: String) throws -> [UInt8] {
    try bytes(RecoveryCode.parse(KeychainSamples.secret(text).span))
  }

  private static func code(_ bytes: [UInt8]) throws -> SlotSecret {
    SlotSecret(.recoveryCode, try KeychainSamples.secret(bytes))
  }

  /// The text is Crockford's base 32 of the bytes, as Python made it, and the remainder of that number divided by 1021.
  @Test(arguments: [
    ([UInt8](repeating: 0, count: 16), "0000-0000-0000-0000-0000-0000-0000"),
    ([UInt8](repeating: 0xFF, count: 16), "ZZZZ-ZZZZ-ZZZZ-ZZZZ-ZZZZ-ZZZZ-ZWGT"),
    (Array(0..<16), "000G-40R4-0M30-E209-185G-R38E-1WNR"),
  ])
  func textOfACode(bytes: [UInt8], text: String) throws {
    #expect(try Self.text(Self.code(bytes)) == text)
    #expect(try Self.parse(text) == bytes)
  }

  @Test func codesAreReadAsTheyAreTyped() throws {
    let bytes = Array<UInt8>(0..<16)
    let text = try Self.text(Self.code(bytes))
    for typed in [
      text.lowercased(), text.replacing("-", with: ""), text.replacing("-", with: " "), " " + text + " ",
      text.replacing("0", with: "O"), text.replacing("0", with: "o"), text.replacing("1", with: "I"),
      text.replacing("1", with: "l"),
    ] {
      #expect(try Self.parse(typed) == bytes, "\(typed)")
    }
  }

  @Test func eachWrongSymbolIsFound() throws {
    let text = Array(try Self.text(RecoveryCode.make()).utf8)
    for index in text.indices where text[index] != UInt8(ascii: "-") {
      for symbol in "0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8 where symbol != text[index] {
        var wrong = text
        wrong[index] = symbol
        #expect(throws: StoreError.self) { try Self.parse(String(decoding: wrong, as: UTF8.self)) }
      }
    }
  }

  @Test func neighboursThatChangedPlacesAreFound() throws {
    let text = Array(try Self.text(RecoveryCode.make()).utf8).filter { $0 != UInt8(ascii: "-") }
    for index in text.indices.dropLast() where text[index] != text[index + 1] {
      var wrong = text
      wrong.swapAt(index, index + 1)
      #expect(throws: StoreError.self) { try Self.parse(String(decoding: wrong, as: UTF8.self)) }
    }
  }

  @Test(arguments: ["", "0000", "0000-0000-0000-0000-0000-0000-0000-0", "U000-0000-0000-0000-0000-0000-0000"])
  func whatIsNoCodeIsRefused(text: String) {
    #expect(throws: StoreError.self) { try Self.parse(text) }
  }

  @Test func codesAreRandom() throws {
    #expect(try Self.bytes(RecoveryCode.make()) != Self.bytes(RecoveryCode.make()))
  }

  @Test func credentialsAreReadAsTheyAreWritten() throws {
    let credential = try LoginCredential.make()
    let text = try LoginCredential.text(of: credential)
    #expect(text.count == LoginCredential.longest)
    #expect(try Self.bytes(LoginCredential.parse(text.span)) == Self.bytes(credential))
    for wrong in ["", "00", String(repeating: "0", count: 66), String(repeating: "g", count: 64)] {
      #expect(throws: StoreError.self) { try LoginCredential.parse(KeychainSamples.secret(wrong).span) }
    }
  }
}
