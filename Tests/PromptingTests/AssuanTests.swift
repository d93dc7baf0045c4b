import SecretMemory
import Testing

@testable import Prompting

/// The lines that go to a pinentry and come from it.
@Suite struct AssuanTests {
  @Test(arguments: [("plain", "plain"), ("50 %\r\nnext", "50 %25%0D%0Anext"), ("%0A", "%250A")])
  func textOfOneLineIsEscaped(text: String, line: String) {
    #expect(Assuan.escaped(text) == line)
  }

  @Test(arguments: [
    ("OK", true), ("OK Pleased to meet you", true), ("S PASSPHRASE_FROM_CACHE", false), ("# comment", false),
    ("D x", false),
  ])
  func okEndsAnAnswer(line: String, isEnd: Bool) throws {
    #expect(try Assuan.isOK(line) == isEnd)
  }

  /// libgpg-error: the source is in the upper bits.
  @Test(arguments: [
    ("ERR 83886179 Operation cancelled <Pinentry>", Pinentry.Failure.cancelled), ("ERR 99", .cancelled),
    ("ERR 83886194 Not confirmed <Pinentry>", .notConfirmed), ("ERR 83886142 Timeout <Pinentry>", .late),
    ("ERR 1", .broken), ("ERR nonsense", .broken), ("ERR ", .broken), ("", .broken),
  ])
  func errorIsWhatItsNumberSays(line: String, failure: Pinentry.Failure) {
    #expect(throws: failure) { try Assuan.isOK(line) }
  }

  @Test(arguments: [
    ("D horse", "horse"), ("D ", ""), ("D 50 %25%0Anext", "50 %\nnext"), ("D %E2%82%AC", "€"),
    ("D 100%", "100%"),
    ("D %zz", "%"),
  ])
  func secretIsDecoded(line: String, text: String) throws {
    var secret = try SecretBytes()
    #expect(try Assuan.append(line.utf8.span, to: &secret))
    #expect(secret.unprotected == Array(text.utf8))
  }

  @Test func otherLineIsNoSecret() throws {
    var secret = try SecretBytes()
    #expect(try !Assuan.append("S PIN_REPEATED".utf8.span, to: &secret))
    #expect(secret.unprotected.isEmpty)
  }
}
