import Model
import OneTimeCodes
import SecretMemory
import Store
import StoreConformance
import Testing

/// RFC 4226, appendix D, and RFC 6238, appendix B.
@Suite struct CodeGeneratorTests {
  private static let keys = [
    "SHA1": "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ",
    "SHA256": "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZA====",
    "SHA512":
      "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNA=",
  ]

  private func generator(_ uri: String) throws -> CodeGenerator {
    try CodeGenerator(KeychainSamples.secret(uri))
  }

  private func code(_ uri: String, at seconds: Int64) throws -> String {
    String(
      decoding: try generator(uri).code(at: Timestamp(seconds: seconds)).digits.unprotected, as: UTF8.self)
  }

  @Test(arguments: [
    (59, "94287082", "46119246", "90693936"), (1_111_111_109, "07081804", "68084774", "25091201"),
    (1_111_111_111, "14050471", "67062674", "99943326"), (1_234_567_890, "89005924", "91819424", "93441116"),
    (2_000_000_000, "69279037", "90698825", "38618901"), (20_000_000_000, "65353130", "77737706", "47863826"),
  ])
  func timeStepsOfTheRFC(seconds: Int64, sha1: String, sha256: String, sha512: String) throws {
    for (algorithm, expected) in ["SHA1": sha1, "SHA256": sha256, "SHA512": sha512] {
      let key = try #require(Self.keys[algorithm])
      let uri = "otpauth://totp/a?secret=\(key)&algorithm=\(algorithm)&digits=8"
      #expect(try code(uri, at: seconds) == expected, "\(algorithm)")
    }
  }

  @Test func countersOfTheRFC() throws {
    let expected = [
      "755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489",
    ]
    var uri = try KeychainSamples.secret(
      "otpauth://hotp/a?counter=0&secret=\(Self.keys["SHA1"] ?? "")&issuer=x")
    for (counter, digits) in expected.enumerated() {
      let generator = try CodeGenerator(uri)
      #expect(generator.counter == UInt64(counter))
      #expect(
        String(decoding: try generator.code(counter: UInt64(counter)).unprotected, as: UTF8.self) == digits)
      uri = try generator.counted(uri)
    }
    #expect(
      String(decoding: uri.unprotected, as: UTF8.self)
        == "otpauth://hotp/a?counter=10&secret=\(Self.keys["SHA1"] ?? "")&issuer=x")
  }

  /// Small letters, percent-encoding, another order, six and seven digits: the same key.
  @Test func writtenOtherwise() throws {
    let key = "gezdgnbvgy3tqojqgezdgnbvgy3tqoj%51"
    #expect(try code("OTPAUTH://TOTP/a:b?issuer=x&secret=\(key)", at: 59) == "287082")
    #expect(try code("otpauth://totp/?digits=%37&secret=\(key)&image=y", at: 59) == "4287082")
    #expect(try code("otpauth://totp/a?secret=\(key)&period=60&digits=8", at: 119) == "94287082")
  }

  @Test func stepBeginsAndEnds() throws {
    let generator = try generator("otpauth://totp/a?secret=MFRGG&period=45")
    let moment = try generator.code(at: Timestamp(seconds: 134, nanoseconds: 9)).moment
    #expect(moment == .step(since: Timestamp(seconds: 90), period: 45))
    #expect(moment.end == Timestamp(seconds: 135))
    #expect(try generator.code(at: Timestamp(seconds: 135)).moment.end == Timestamp(seconds: 180))
  }

  /// The codes that the app gave for an account that was thrown away, which KeePassXC's tests have too.
  @Test(arguments: ["encoder=steam", "encoder=Steam&digits=5"])
  func steamsHaveAnAlphabetOfTheirOwn(parameters: String) throws {
    let uri = "otpauth://totp/Valve:a?secret=63BEDWCQZKTQWPESARIERL5DTTQFCJTK&issuer=Valve&\(parameters)"
    #expect(try code(uri, at: 1_511_200_518) == "FR8RV")
    #expect(try code(uri, at: 1_511_200_714) == "9P3VP")
  }

  @Test(arguments: ["digits=5", "digits=9", "period=99999999999"])
  func otherCodesAreRefused(parameter: String) throws {
    let error = #expect(throws: StoreError.self) {
      _ = try generator("otpauth://totp/a?secret=MFRGG&\(parameter)")
    }
    guard case .unsupported = error else {
      Issue.record("\(parameter): \(String(describing: error))")
      return
    }
  }

  @Test func lastCounterIsNotGivenOut() throws {
    let uri = try KeychainSamples.secret("otpauth://hotp/a?secret=MFRGG&counter=18446744073709551615")
    let generator = try CodeGenerator(uri)
    #expect(throws: StoreError.self) { _ = try generator.counted(uri) }
  }
}
