import Formats
import Testing

@testable import Backup

@Suite struct OpenFileTests {
  /// The error named the backup that was to be written.
  @Test func fileThatCanNotBeReadIsNamed() throws {
    let folder = try OpenFile("/tmp")
    #expect {
      try folder.read(1)
    } throws: { error in
      (error as? FormatError)?.reason.hasPrefix("/tmp can't be read: ") == true
    }
  }
}
