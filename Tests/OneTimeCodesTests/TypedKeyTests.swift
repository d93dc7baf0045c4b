import Model
import OneTimeCodes
import SecretMemory
import Store
import StoreConformance
import Testing

@Suite struct TypedKeyTests {
  private func uri(_ text: String, issuer: String = "my service", account: String = "a@b") throws -> String {
    let uri = try TypedKey.uri(of: KeychainSamples.secret(text), issuer: issuer, account: account)
    return String(decoding: uri.unprotected, as: UTF8.self)
  }

  @Test(arguments: ["JBSWY3DPEHPK3PXP", " jbsw y3dp-ehpk 3pxp\n", "JBSWY3DPEHPK3PXP===="])
  func keyAloneIsOfTheItem(text: String) throws {
    #expect(
      try uri(text) == "otpauth://totp/my%20service:a@b?secret=JBSWY3DPEHPK3PXP&issuer=my%20service")
  }

  @Test func keyOfSteamSaysSo() throws {
    #expect(
      try uri("steam://jbsw y3dp ehpk 3pxp\n")
        == "otpauth://totp/my%20service:a@b?secret=JBSWY3DPEHPK3PXP&issuer=my%20service&encoder=steam")
  }

  @Test func uriStaysAsItIs() throws {
    let text = "otpauth://hotp/x?secret=JBSWY3DPEHPK3PXP&counter=7&color=red"
    #expect(try uri("\(text)\r\n") == text)
  }

  @Test(arguments: [
    ("", "too short"), ("JBSWY3D", "too short"), ("JBSWY3DPEHPK3PX1", "base32"), ("JBSW=Y3DPEHP", "base32"),
    ("hello world!", "base32"), ("steam://JBSW", "too short"), ("steam:JBSWY3DPEHPK3PXP", "base32"),
    ("otpauth://totp/a?secret=JBSWY3DPEHPK3PXP&digits=5", "5 digits"),
    ("otpauth://totp/a?issuer=x", "no parameter `secret`"), ("otpauth://yubi/a?secret=MFRGG", "totp or hotp"),
    ("otpauth://hotp/a?secret=MFRGG", "counter"),
  ])
  func whatIsWrongIsSaid(text: String, reason: String) throws {
    let error = #expect(throws: StoreError.self) { _ = try uri(text) }
    guard case .invalidValue(let said) = error else {
      Issue.record("\(text): \(String(describing: error))")
      return
    }
    #expect(said.contains(reason) && !said.contains("JBSW"))
  }
}
