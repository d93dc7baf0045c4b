import Formats
import Model
import Testing

@testable import CredentialProtocols

@Suite struct AskpassPromptTests {
  @Test(
    arguments: [
      ("Enter passphrase for key '/home/a/.ssh/id_ed25519': ", .passphrase(key: "/home/a/.ssh/id_ed25519")),
      ("Enter passphrase for /home/a/.ssh/id_ed25519: ", .passphrase(key: "/home/a/.ssh/id_ed25519")),
      ("Enter passphrase for /k (will confirm each use): ", .passphrase(key: "/k")),
      ("Bad passphrase, try again for /home/a/.ssh/id_ed25519: ", .passphraseAgain),
      ("anna@example.com's password: ", .login(user: "anna", host: "example.com")),
      ("a@b@example.com's password: ", .login(user: "a@b", host: "example.com")),
      ("Username for 'https://example.com': ", .gitUser(url: "https://example.com")),
      ("Password for 'https://anna@example.com': ", .gitPassword(url: "https://anna@example.com")),
      ("[sudo] password for anna: ", .sudo(user: "anna")),
    ] as [(String, AskpassPrompt)])
  func knownQuestions(text: String, prompt: AskpassPrompt) { #expect(AskpassPrompt(text) == prompt) }

  /// Questions that a server may choose, or a program that lies about itself.
  @Test(arguments: [
    "", "Password: ", "(anna@evil.example) Enter passphrase for key '/home/a/.ssh/id_ed25519': ",
    "(anna@evil.example) anna@example.com's password: ", "Enter passphrase for key '': ",
    "Enter passphrase for key '/a':", " Enter passphrase for key '/a': ", "Enter passphrase for relative: ",
    "x\nEnter passphrase for key '/a': ", "[sudo] password for anna: x", "[sudo] password for : ",
    "[sudo] password for a b: ", "enter passphrase for key '/a': ", "@a's password: ", "a@'s password: ",
    "say a@b's password: ",
  ])
  func otherQuestionsAreUnknown(text: String) {
    #expect(AskpassPrompt(text) == .unknown && AskpassPrompt(text).identity == nil)
  }

  @Test func gitsQuestionsBecomeItsLines() {
    func lines(_ text: String) -> String? { AskpassPrompt(text).gitLines }
    #expect(lines("Username for 'http://127.0.0.1:80': ") == "protocol=http\nhost=127.0.0.1:80\n")
    #expect(
      lines("Password for 'https://a%40b@h/x%20y.git': ")
        == "protocol=https\nusername=a@b\nhost=h\npath=x y.git\n")
    #expect(lines("Password for 'https://a%0ahost=evil@h': ") == nil)
    #expect(lines("Password for 'h': ") == nil && lines("Password for '://h': ") == nil)
    #expect(lines("[sudo] password for anna: ") == nil)
  }
}

@Suite struct SystemdCredentialTests {
  private func parsed(_ text: String) -> SystemdCredential? {
    SystemdCredential(address: Array(text.utf8))
  }

  @Test func unitAndNameAreRead() throws {
    let credential = try #require(parsed("4af83c2d/unit/web@a\\x2d1.service/token"))
    #expect(credential.unit == "web@a\\x2d1.service" && credential.id == "token")
    #expect(credential.identity == .generic(service: "systemd", account: "web@a\\x2d1.service:token"))
  }

  @Test(arguments: [
    "", "a", "/unit/web.service/t", "a/unit/web.service", "a/unit/web.service/", "a/unit//t", "a/unit/web/t",
    "a/user/web.service/t", "a/unit/web.service/t/u", "a/unit/w b.service/t", "a/unit/web.service/a:b",
    "a/unit/web.service/..", "a/unit/web.service/a\nb", "a/unit/web.service/\u{E9}",
  ])
  func otherAddressesAreNone(text: String) { #expect(parsed(text) == nil) }
}

@Suite struct AWSCredentialTests {
  @Test func linesAndJSONBecomeTheAnswer() throws {
    let answer = #"{"Version":1,"AccessKeyId":"AK","SecretAccessKey":"S=/+","SessionToken":"T"}"# + "\n"
    let lines = """
      # a comment
      [work]
      aws_access_key_id = AK\r
        aws_secret_access_key=S=/+
      region = eu-west-1
      aws_session_token = T
      """
    #expect(try AWSCredential(source(lines)).answer().text() == answer)
    #expect(try AWSCredential(source(answer)).answer().text() == answer)
    let expiring =
      #"{"Version":1,"AccessKeyId":"AK","SecretAccessKey":"S","Expiration":"2030-01-01T00:00:00Z"}"# + "\n"
    #expect(try AWSCredential(source(expiring)).answer().text() == expiring)
  }

  @Test(arguments: ["", "\n", "hunter2", "aws_access_key_id = AK\n", #"{"AccessKeyId":"AK"}"#, "{", "a=b\nc"])
  func withoutBothKeysItIsNone(text: String) throws {
    let input = try source(text)
    #expect(reason { () throws(FormatError) in _ = try AWSCredential(input) } != nil)
  }
}
