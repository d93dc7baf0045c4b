import Model
import SecretMemory
import Testing

@testable import Prompting

@Suite struct SecretInputTests {
  private static func text(_ secret: borrowing SecretBytes) -> String {
    unsafe secret.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
  }

  /// The next reader wants the rest.
  @Test func lineTakesNoByteBehindItsEnd() throws {
    let pipe = Pipe(holding: "first\nsecond\nrest".utf8)
    #expect(try Self.text(SecretInput.readLine(descriptor: pipe.readEnd)) == "first")
    #expect(try Self.text(SecretInput.readLine(descriptor: pipe.readEnd)) == "second")
    #expect(try Self.text(SecretInput.readLine(descriptor: pipe.readEnd)) == "rest")
    #expect(try Self.text(SecretInput.readLine(descriptor: pipe.readEnd)) == "")
  }

  @Test func restIsReadAsItIs() throws {
    let pipe = Pipe(holding: "first\nsecond\n".utf8)
    #expect(try Self.text(SecretInput.read(descriptor: pipe.readEnd, limit: 100)) == "first\nsecond\n")
  }

  @Test func limitIsKept() throws {
    let short = Pipe(holding: Array(repeating: 0x61, count: 8))
    #expect(try SecretInput.read(descriptor: short.readEnd, limit: 8).count == 8)
    let long = Pipe(holding: Array(repeating: 0x61, count: 9))
    #expect(
      Self.reason { _ = try SecretInput.read(descriptor: long.readEnd, limit: 8) } == "more than 8 bytes came"
    )
  }

  @Test func descriptorThatCannotBeReadIsAFailure() {
    let reason = Self.reason { _ = try SecretInput.readLine(descriptor: -1) }
    #expect(reason?.hasPrefix("the input can't be read: ") == true)
  }

  private static func reason(_ body: () throws -> Void) -> String? {
    do {
      try body()
      return nil
    } catch {
      return (error as? Failure)?.reason
    }
  }
}
