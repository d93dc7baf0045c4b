import Formats
import Model
import Testing

@testable import CredentialProtocols

@Suite struct DockerCredentialTests {
  @Test func serverIsOneLine() throws {
    #expect(
      try DockerCredential.server(source(" https://index.docker.io/v1/\n")) == "https://index.docker.io/v1/")
    for text in ["", "\n", "a\nb", "a\0b", "a\rb"] {
      let input = try source(text)
      #expect(reason { () throws(FormatError) in _ = try DockerCredential.server(input) } != nil, "\(text)")
    }
  }

  @Test func credentialIsRead() throws {
    let credential = try DockerCredential.Credential(
      source(#"{"ServerURL":"ghcr.io","Username":"<token>","Secret":"a\"b\u0000","Other":[1]}"#))
    #expect(credential.server == "ghcr.io" && credential.username == DockerCredential.tokenUser)
    #expect(try credential.secret.bytes().text() == "a\"b\0")
    for (text, words) in [
      ("{}", DockerCredential.noServer), (#"{"ServerURL":"a"}"#, DockerCredential.noUser),
      (#"{"ServerURL":"a","Username":"u"}"#, "no credentials secret"), ("[]", "expected"),
      (#"{"ServerURL":"a","ServerURL":"b"}"#, "twice"),
    ] {
      let input = try source(text)
      let reason = reason { () throws(FormatError) in _ = try DockerCredential.Credential(input) }
      #expect(reason?.contains(words) == true, "\(text)")
    }
  }

  @Test func answersAreLinesOfJSON() throws {
    let stored = try secret("p\"w\n")
    #expect(
      try DockerCredential.answer(server: "ghcr.io", username: "u", secret: stored).text()
        == #"{"ServerURL":"ghcr.io","Username":"u","Secret":"p\"w"}"# + "\n")
    #expect(DockerCredential.list([:]) == "{}\n")
    #expect(DockerCredential.list(["b": "u", "a\"": "v"]) == #"{"a\"":"v","b":"u"}"# + "\n")
  }
}
