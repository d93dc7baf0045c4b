import Control
import Model
import Platform
import Store
import Testing

@testable import Service

/// The lines of `keyhole log`.
@Suite struct AccessLogReaderTests {
  private static let fields =
    #""time":"2026-01-01T00:00:00Z","decision":"allowed","program":"/usr/bin/cat","pid":7"#

  private let folder: TemporaryFolder
  private let log: AccessLog

  init() throws {
    folder = try TemporaryFolder()
    log = AccessLog(stateFolder: folder.path)
  }

  private func reader(_ form: AccessLogReader.Form) -> AccessLogReader {
    AccessLogReader(log, as: form) { "keychain/\($0.rawValue)" }
  }

  private func add(_ text: String) throws {
    try Descriptor(log.path, [.writing, .append, .create]).write(Array(text.utf8))
  }

  @Test func lineHasItsColumns() throws {
    try add("{\(Self.fields),\"item\":\"n\",\"terminal\":\"/dev/pts/1\",\"parents\":[\"sh\",\"login\"]}\n")
    #expect(
      reader(.columns).allLines() == [
        "2026-01-01T00:00:00Z\tallowed\tkeychain/n\t/usr/bin/cat (7)\t/dev/pts/1\tsh < login"
      ])
  }

  @Test func scriptAndSecondSecretAreNamed() throws {
    try add("{\(Self.fields),\"item\":\"n\",\"secret\":\"otpauth\",\"script\":\"/x.sh\"}\n{\(Self.fields)}\n")
    #expect(
      reader(.columns).allLines() == [
        "2026-01-01T00:00:00Z\tallowed\tkeychain/n (otpauth)\t/usr/bin/cat /x.sh (7)\t-\t-",
        "2026-01-01T00:00:00Z\tallowed\t-\t/usr/bin/cat (7)\t-\t-",
      ])
  }

  @Test func objectGetsThePathOfItsItem() throws {
    try add("{\(Self.fields),\"item\":\"n\"}\n{\(Self.fields)}\n")
    #expect(
      reader(.json).allLines() == [
        "{\(Self.fields),\"item\":\"n\",\"path\":\"keychain/n\"}", "{\(Self.fields)}",
      ])
  }

  @Test func browserHasTheCommandThatAllowsIt() throws {
    let fields = #""time":"2026-01-01T00:00:00Z","decision":"browsing","program":"/usr/bin/a b","pid":7"#
    try add("{\(fields),\"item\":\"n\",\"secret\":\"otpauth\"}\n{\(fields)}\n")
    #expect(
      reader(.columns).allLines() == [
        "2026-01-01T00:00:00Z\tbrowsing\tkeychain/n (otpauth)\t/usr/bin/a b (7)\t-\t-"
          + "\tkeyhole allow '/usr/bin/a b' keychain/n",
        "2026-01-01T00:00:00Z\tbrowsing\t-\t/usr/bin/a b (7)\t-\t-",
      ])
    #expect(reader(.json).allLines()[0].hasSuffix(#","allow":"keyhole allow '/usr/bin/a b' keychain/n"}"#))
  }

  /// A name of a program must control neither the terminal nor the format.
  @Test func wordThatControlsTheTerminalIsEscaped() throws {
    try add(#"{"decision":"allowed","program":"a\tb\n[31m","pid":7}"# + "\n")
    let lines = reader(.columns).allLines()
    #expect(lines.count == 1 && lines[0].split(separator: "\t").count == 6)
    #expect(!lines[0].contains("\u{1B}") && !lines[0].contains("\n"))
  }

  @Test func onlyNewAndWholeLinesFollow() throws {
    let reader = reader(.json)
    #expect(reader.newLines().isEmpty)
    try add("{\"pid\":1}\n{\"pid\"")
    #expect(reader.newLines() == ["{\"pid\":1}"])
    #expect(reader.newLines().isEmpty)
    try add(":2}\nnonsense\n{\"pid\":3}\n")
    #expect(reader.newLines() == ["{\"pid\":2}", "{\"pid\":3}"])
  }

  @Test func restOfTheFileThatBecameTheOlderOneIsRead() throws {
    try add("{\"pid\":1}\n")
    let reader = reader(.json)
    #expect(reader.allLines() == ["{\"pid\":1}"])
    try add("{\"pid\":2}\n")
    try Files.rename(log.path, to: log.olderPath)
    try add("{\"pid\":3}\n")
    #expect(reader.newLines() == ["{\"pid\":2}", "{\"pid\":3}"])
    #expect(self.reader(.json).allLines() == ["{\"pid\":1}", "{\"pid\":2}", "{\"pid\":3}"])
  }
}
