import SecretMemory
import Store
import Testing

@testable import PromptHelper

/// The answer of the process that asks.
@Suite struct AuthenticationReplyTests {
  private static func readBack(_ answer: Answer) -> Answer {
    var pipe = Pipe()
    AuthenticationReply.send(answer, to: pipe.writeEnd)
    pipe.closeWriteEnd()
    return AuthenticationReply.read(pipe.readEnd)
  }

  private static func read(_ text: String) -> Answer {
    let pipe = Pipe(holding: text.utf8)
    return AuthenticationReply.read(pipe.readEnd)
  }

  @Test func eachAnswerIsReadBack() {
    guard case .approved(nil, .items) = Self.readBack(.approved(nil)),
      case .approved(nil, .process) = Self.readBack(.approved(nil, scope: .process)),
      case .refused = Self.readBack(.refused), case .rejected = Self.readBack(.rejected),
      case .revoked = Self.readBack(.revoked), case .timedOut = Self.readBack(.timedOut),
      case .never = Self.readBack(.never),
      case .approved(nil, .session) = Self.readBack(.approved(nil, scope: .session)),
      case .approved(nil, .always) = Self.readBack(.approved(nil, scope: .always)),
      case .impossible("there is no pinentry") = Self.readBack(.impossible("there is no pinentry"))
    else {
      Issue.record("another answer was read than was sent")
      return
    }
  }

  @Test func passwordIsReadBack() throws {
    var secret = try SecretBytes()
    try unsafe Array("staple".utf8).withUnsafeBytes { try unsafe secret.append($0) }
    guard case .approved(let password?, .items) = Self.readBack(.approved(ItemPassword(secret))) else {
      Issue.record("the password was not read")
      return
    }
    let bytes = unsafe password.bytes.withUnsafeBytes { unsafe Array($0) }
    #expect(bytes == Array("staple".utf8))
  }

  /// A process that ended without an answer has not approved.
  @Test(arguments: ["", "\n", "Approved", "approved \n", "approved-proces"])
  func otherTextApprovesNothing(text: String) {
    if case .approved = Self.read(text) { Issue.record("\(text.debugDescription) approved") }
  }
}
