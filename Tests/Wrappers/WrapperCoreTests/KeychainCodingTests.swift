import FTPropertyWrappers
import Foundation
import Testing

/// Secrets byte for byte as the original writes them.
@Suite struct KeychainCodingTests {
  private func bytes(_ value: some Encodable) throws -> [UInt8] { Array(try KeychainEncoder().encode(value)) }
  private func read<T: Decodable>(_ type: T.Type, _ bytes: [UInt8]) throws -> T {
    try KeychainDecoder().decode(type, from: Data(bytes))
  }

  @Test func singleValues() throws {
    #expect(try bytes(258) == [2, 1, 0, 0, 0, 0, 0, 0])
    #expect(try bytes(Int8(-1)) == [UInt8](repeating: 0xFF, count: 8))
    #expect(try bytes(UInt8(255)) == [0xFF, 0, 0, 0, 0, 0, 0, 0])
    #expect(try bytes(true) == [1, 0, 0, 0, 0, 0, 0, 0])
    #expect(try bytes("é") == [0xC3, 0xA9])
    #expect(try bytes(URL(string: "https://a/b")) == Array("https://a/b".utf8))
    #expect(try bytes(Data([0, 1])) == [0, 1])
    #expect(try bytes(["a"]).starts(with: Array("bplist00".utf8)))
  }

  enum Word: String, Codable { case one, two }
  enum Number: Int, Codable { case one = 1, two }
  struct Parts: Codable, Equatable { var a = 1, b = "x" }

  @Test func everythingComesBack() throws {
    try check(Int.min)
    try check(UInt64.max)
    try check(UInt8(200))
    try check(false)
    try check("")
    try check(Data())
    try check(0.1)
    try check(Float(0.1))
    try check(Decimal(string: "0.1234567890123456789"))
    try check(Date(timeIntervalSinceReferenceDate: 0.25))
    try check(UUID())
    try check(Word.two)
    try check(Number.two)
    try check(Optional(3))
    try check(Optional("three"))
    try check([1, 2])
    try check(["a": [Date(timeIntervalSinceReferenceDate: 0.25)]])
    try check(Set([1]))
    try check(Parts())
    try check(URL(string: "https://a/b"))
  }

  private func check<T: Codable & Equatable>(_ value: T) throws {
    let data = try KeychainEncoder().encode(value)
    #expect(try KeychainDecoder().decode(T.self, from: data) == value)
  }

  @Test func narrowingNeverClampsAndNeverTraps() throws {
    let large = try bytes(300)
    #expect(throws: KeychainError.self) { try read(Int8.self, large) }
    #expect(throws: KeychainError.self) { try read(UInt8.self, large) }
    #expect(throws: KeychainError.self) { try read(Bool.self, large) }
    #expect(try read(Int16.self, large) == 300)
  }

  @Test func shorterIntegersAndText() throws {
    #expect(try read(Int.self, [0xFE, 0xFF]) == -2)
    #expect(try read(Int.self, Array("x".utf8)) == 120)
    #expect(try read(Int.self, Array("42".utf8)) == 42)
    #expect(try read(Double.self, Array("0.5".utf8)) == 0.5)
    #expect(throws: KeychainError.self) { try read(Int.self, [1, 2, 3]) }
    #expect(throws: KeychainError.self) { try read(String.self, [0xFF]) }
  }
}
