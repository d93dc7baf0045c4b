import Model
import Testing

/// The syntax of `otpauth:` URIs.
@Suite struct KeyURITests {
  @Test(arguments: [
    "otpauth://totp/Example:alice@example.org?secret=JBSWY3DPEHPK3PXP&issuer=Example",
    "otpauth://totp/?secret=jbswy3dpehpk3pxp",
    "OTPAUTH://TOTP/a?secret=JBSWY3DPEHPK3PXP%3D%3D",
    "otpauth://totp/a?secret=JBSWY3DPEHPK3PXP====&period=60&digits=8&algorithm=SHA512",
    "otpauth://totp/Steam:a?secret=ABC2345&digits=5&encoder=steam&image=https%3A%2F%2Fx",
    "otpauth://hotp/a%20b:c?counter=0&secret=JBSWY3DPEHPK3PXP&algorithm=sha1",
    "otpauth://totp/é?issuer=100%&secret=JB",
  ])
  func isOne(_ uri: String) throws {
    #expect(refusal(uri) == nil)
  }

  @Test(arguments: [
    "", "otpauth://", "otpauth://totp", "otpauth://totp/", "otpauth://totp/a", "otpauth://totp/a?secret=",
    "otpauth://totp/a?secret=J", "otpauth://totp/a?secret=JB1", "otpauth://totp/a?secret=J%42%4",
    "otpauth://totp/a?secret=J%zz", "otpauth://totp/a?secret=JB=JB", "otpauth://totp/a?issuer=b",
    "otpauth://totp/a?secret=JBSW&secret=JBSW", "otpauth://motp/a?secret=JBSW",
    "otpauth://hotp/a?secret=JBSW", "otpauth://hotp/a?secret=JBSW&counter=",
    "otpauth://totp/a?secret=JBSW&digits=x", "otpauth://totp/a?secret=JBSW&digits=4",
    "otpauth://totp/a?secret=JBSW&digits=99999999999999999999999", "otpauth://totp/a?secret=JBSW&period=0",
    "otpauth://totp/a?secret=JBSW&algorithm=MD5", "otpauth://totp/a?secret=JBSW\n",
    "otpauth://totp/a\0?secret=JBSW", "steam://JBSWY3DP", "JBSWY3DPEHPK3PXP", " otpauth://totp/a?secret=JBSW",
  ])
  func isNone(_ text: String) throws {
    let reason = try #require(refusal(text))
    #expect(reason.hasPrefix("not an otpauth URI: ") && !reason.contains("JBSW"))
  }

  /// Text that can't become a URI any more is refused with the byte that decides it.
  @Test func isRefusedEarly() throws {
    var check = KeyURICheck()
    for byte in "otpauth://t".utf8 { try check.take(byte) }
    #expect(throws: StoreError.self) {
      for byte in "ext/".utf8 { try check.take(byte) }
    }
  }

  /// No bytes cause a trap.
  @Test func anyBytesAreJudged() {
    var generator = SystemRandomNumberGenerator()
    let uri = Array("otpauth://totp/a%20b:c?counter=0&secret=JBSWY3DPEHPK3PXP&digits=6&period=30".utf8)
    for _ in 0..<20_000 {
      var bytes = uri
      for _ in 0..<Int.random(in: 1...3, using: &generator) {
        bytes[Int.random(in: bytes.indices, using: &generator)] = .random(
          in: .min ... .max, using: &generator)
      }
      bytes.removeLast(Int.random(in: 0...bytes.count, using: &generator))
      try? KeyURI.check(bytes.span)
    }
  }

  private func refusal(_ text: String) -> String? {
    do {
      var check = KeyURICheck()
      for byte in text.utf8 { try check.take(byte) }
      try check.finish()
      return nil
    } catch StoreError.invalidValue(let reason) {
      return reason
    } catch {
      return "another error"
    }
  }

  @Test(arguments: [
    ("otpauth://hotp/a?counter=9&secret=MFRGG", "otpauth://hotp/a?counter=10&secret=MFRGG", true),
    ("otpauth://hotp/a?secret=MFRGG&counter=19", "otpauth://hotp/a?secret=MFRGG&counter=20", true),
    ("otpauth://hotp/a?secret=MFRGG&counter=1", "otpauth://hotp/a?secret=MFRGG&counter=1", true),
    ("otpauth://hotp/a?secret=MFRGG&counter=1", "otpauth://hotp/a?secret=MFRGG&counter=1&x", false),
    ("otpauth://hotp/a?counter=1&secret=MFRG2", "otpauth://hotp/a?counter=2&secret=MFRG3", false),
    ("otpauth://hotp/a?secret=MFRG2&counter=1", "otpauth://hotp/a?secret=MFRG3&counter=1", false),
    ("otpauth://hotp/a?xcounter=1", "otpauth://hotp/a?xcounter=2", false), ("", "1", false), ("", "", true),
  ])
  func counterIsAllThatDiffers(one: String, other: String, isSame: Bool) {
    #expect(KeyURI.areSameButForCounter(Array(one.utf8).span, Array(other.utf8).span) == isSame)
  }

  @Test(arguments: [
    ("counter=9&secret=GE", "counter=8&secret=GE", true), ("counter=8", "counter=9", false),
    ("counter=10", "counter=9", true), ("counter=010", "counter=9", true),
    ("counter=09", "counter=10", false),
    ("counter=9", "counter=9", false), ("counter=0009", "counter=9", false),
    ("counter=9&secret=GF", "counter=8&secret=GE", false), ("digits=8", "digits=6", false),
    ("counter=99999999999999999999", "counter=9", true),
  ])
  func aHigherCounterIsKnown(one: String, other: String, isFurther: Bool) {
    let (one, other) = (Array("otpauth://hotp/a?\(one)".utf8), Array("otpauth://hotp/a?\(other)".utf8))
    #expect(KeyURI.isCountedFurther(one.span, than: other.span) == isFurther)
  }
}
