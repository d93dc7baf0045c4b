import Formats
import Model
import Testing

@testable import CredentialProtocols

/// Messages of tools that Debian 12 does not have in a version with the protocol: written down from the documents of cargo,
/// kubectl, Terraform and Bazel, not from running them.
@Suite struct RecordedProtocolTests {
  @Test func cargo() throws {
    let get = try CargoCredential.Request(
      source(
        #"{"v":1,"registry":{"index-url":"sparse+https://registry.example/index/","name":"my","headers":["WWW-Authenticate: Cargo"]},"kind":"get","operation":"publish","name":"sample","vers":"0.1.0","cksum":"12","args":[]}"#
      ))
    #expect(get.kind == .get && get.index == "sparse+https://registry.example/index/" && get.isSupported)
    let login = try CargoCredential.Request(
      source(
        #"{"v":1,"registry":{"index-url":"sparse+https://registry.example/index/"},"kind":"login","token":"t","login-url":"https://a","args":[]}"#
      ))
    #expect(try login.kind == .login && login.token?.bytes().text() == "t")
    let logout = try CargoCredential.Request(
      source(
        #"{"v":1,"registry":{"index-url":"https://github.com/rust-lang/crates.io-index"},"kind":"logout","args":[]}"#
      ))
    #expect(logout.kind == .logout && logout.token == nil && logout.isSupported)
    let later = try CargoCredential.Request(
      source(#"{"v":1,"registry":{"index-url":"https://a"},"kind":"rotate"}"#))
    #expect(later.kind == .other)
    let version = try source(#"{"v":2,"kind":"get"}"#)
    #expect(reason { () throws(FormatError) in _ = try CargoCredential.Request(version) } != nil)
    let token = try secret("tok\"en\n")
    #expect(
      try CargoCredential.answer(token).text()
        == #"{"Ok":{"kind":"get","token":"tok\"en","cache":"session","operation_independent":true}}"# + "\n")
    #expect(CargoCredential.done(.logout) == #"{"Ok":{"kind":"logout"}}"# + "\n")
    #expect(
      CargoCredential.Refusal.other("a\"").line == #"{"Err":{"kind":"other","message":"a\"","caused-by":[]}}"#
        + "\n")
  }

  @Test(arguments: [
    ("sparse+https://a/", true), ("sparse+http://a/", false), ("http://localhost:8080/i", true),
    ("sparse+http://127.0.0.1/", true), ("http://localhost.evil.example/", false), ("", false),
    ("ssh://git@a/b", true), ("file:///a", false),
  ])
  func cargoSendsNoTokenInTheClear(url: String, isSupported: Bool) throws {
    let request = try CargoCredential.Request(
      source(#"{"v":1,"registry":{"index-url":"\#(url)"},"kind":"get"}"#))
    #expect(request.isSupported == isSupported)
  }

  @Test func kubectl() throws {
    let request = try KubernetesCredential(
      source(
        #"{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"cluster":{"server":"https://k8s.example:6443","certificate-authority-data":"Zg==","config":null},"interactive":true}}"#
      ))
    #expect(request.server == "https://k8s.example:6443")
    let token = try secret("tok\n")
    #expect(
      try request.answer(token).text()
        == #"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"tok"}}"#
        + "\n")
    let certificate = "-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n"
    let key = "-----BEGIN PRIVATE KEY-----\nQg==\n-----END PRIVATE KEY-----\n"
    let pair = try secret(certificate + key)
    let text = try request.answer(pair).text()
    #expect(
      text.contains(
        #""clientCertificateData":"-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n""#))
    #expect(
      text.contains(#""clientKeyData":"-----BEGIN PRIVATE KEY-----\nQg==\n-----END PRIVATE KEY-----\n""#))
    for bad in [certificate, key, "-----BEGIN CERTIFICATE-----\nQQ==\n"] {
      let half = try secret(bad)
      #expect(reason { () throws(FormatError) in _ = try request.answer(half) } != nil)
    }
    for text in [
      "", "{}", #"{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1alpha1"}"#,
      #"{"kind":"Pod","apiVersion":"client.authentication.k8s.io/v1"}"#,
    ] {
      let input = try source(text)
      #expect(reason { () throws(FormatError) in _ = try KubernetesCredential(input) } != nil, "\(text)")
    }
    let plain = try KubernetesCredential(
      source(
        #"{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","spec":{"interactive":false}}"#
      ))
    #expect(plain.server == nil)
  }

  @Test func terraform() throws {
    let token = try secret("tok")
    #expect(try TerraformCredential.answer(token).text() == #"{"token":"tok"}"# + "\n")
    #expect(try TerraformCredential.token(source(#"{"token":"tok"}"#)).bytes().text() == "tok")
    for text in [#"{"token":"tok","more":1}"#, "{}", #"{"token":""}"#] {
      let input = try source(text)
      #expect(reason { () throws(FormatError) in _ = try TerraformCredential.token(input) } != nil, "\(text)")
    }
  }

  @Test func bazel() throws {
    for (uri, origin) in [
      ("https://remote.example/path?q", "https://remote.example"),
      ("grpcs://Remote.example:443", "grpcs://Remote.example:443"), ("HTTPS://u:p@a/b", "https://a"),
    ] {
      #expect(try BazelCredential.origin(source(#"{"uri":"\#(uri)","x":{}}"#)) == ExactString(origin))
    }
    for text in [
      "{}", #"{"uri":"a"}"#, #"{"uri":"https:///a"}"#, #"{"uri":null}"#, #"{"uri":"https://a\\@b/"}"#,
      #"{"uri":"https://a b"}"#,
    ] {
      let input = try source(text)
      #expect(reason { () throws(FormatError) in _ = try BazelCredential.origin(input) } != nil, "\(text)")
    }
    let token = try secret("tok\n")
    let basic = try secret("Basic YTpi")
    #expect(
      try BazelCredential.answer(token).text() == #"{"headers":{"Authorization":["Bearer tok"]}}"# + "\n")
    #expect(
      try BazelCredential.answer(basic).text() == #"{"headers":{"Authorization":["Basic YTpi"]}}"# + "\n")
  }
}
