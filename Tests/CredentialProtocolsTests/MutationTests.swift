import Formats
import Model
import SecretMemory
import Testing

@testable import CredentialProtocols

/// Damaged messages are refused or read as something else, and never end the process.
@Suite struct MutationTests {
  private static let samples = [
    "protocol=https\nhost=a:8443\npath=p\nusername=u\npassword=p\npassword_expiry_utc=5\n\n",
    #"{"ServerURL":"a","Username":"u","Secret":"s\u00e9\n"}"#,
    #"{"v":1,"registry":{"index-url":"sparse+https://a/","headers":[]},"kind":"login","token":"t","args":[]}"#,
    #"{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"cluster":{"server":"https://a"}}}"#,
    "[a]\naws_access_key_id = AK\naws_secret_access_key = S\n",
    "-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\nQg==\n-----END PRIVATE KEY-----\n",
    "4af8/unit/web.service/token", "Password for 'https://a%40b@h/x': ",
  ]

  private func read(_ bytes: [UInt8]) throws {
    let source = try ByteSource(SecretBytes(copying: bytes.span))
    if let git = try? GitCredential(source) {
      _ = git.identity()
      _ = try? git.storedSecret()
    }
    _ = try? DockerCredential.Credential(source)
    _ = try? DockerCredential.server(source)
    _ = (try? CargoCredential.Request(source))?.isSupported
    _ = try? KubernetesCredential(source)
    _ = try? TerraformCredential.token(source)
    _ = try? BazelCredential.origin(source)
    _ = try? AWSCredential(source).answer()
    _ = SystemdCredential(address: bytes)
    _ = AskpassPrompt(String(decoding: bytes, as: UTF8.self)).gitLines
    let secret = try SecretBytes(copying: bytes.span)
    _ = try? GitCredential(source).answer(username: "u", secret: secret)
    let request = try KubernetesCredential(
      ByteSource(SecretBytes(copying: Array(Self.samples[3].utf8).span)))
    _ = try? request.answer(secret)
  }

  @Test(arguments: samples) func cutAndChangedBytes(sample: String) throws {
    let bytes = Array(sample.utf8)
    for index in bytes.indices {
      try read(Array(bytes.prefix(index)))
      for byte: UInt8 in [0, 0x0A, 0x22, 0x25, 0x2F, 0x3D, 0x5C, 0x7B, 0xFF] {
        var changed = bytes
        changed[index] = byte
        try read(changed)
      }
    }
  }
}
