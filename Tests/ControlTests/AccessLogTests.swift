import Control
import Model
import Platform
import Store
import Testing

/// The record of accesses, as the processes that open the keychain write it together.
@Suite final class AccessLogTests {
  private let folder: String
  private let log: AccessLog

  init() throws {
    folder = "\(Environment.value("TMPDIR") ?? "/tmp")/kh-log.\(UInt64.random(in: 0 ... .max))"
    try Files.makeFolder(folder)
    log = AccessLog(stateFolder: folder, limit: 400)
  }

  deinit {
    for name in (try? Files.names(in: folder)) ?? [] { _ = try? Files.remove("\(folder)/\(name)") }
    _ = try? Files.removeFolder(folder)
  }

  private func event(_ item: String, _ decision: AccessEvent.Decision = .allowed) -> AccessEvent {
    AccessEvent(.read, ItemID(rawValue: item), by: nil, decision, at: Timestamp(seconds: 0))
  }

  private func lines(_ path: String) throws -> [String] {
    let bytes = try Files.read(path, limit: 1 << 20)
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  @Test func lineIsOneObject() throws {
    log.note(event("a\"\n{\"decision\":\"forged\"}", .denied))
    log.note(
      AccessEvent(
        .readWrite, nil, .otpauth, by: Caller.current.identity(), .approved, at: Timestamp(seconds: 1)))
    let lines = try lines(log.path)
    try #require(lines.count == 2 && log.failure == 0)
    #expect(
      lines[0]
        == #"{"time":"1970-01-01T00:00:00Z","operation":"read","decision":"denied","item":"a\"\u000a{\"decision\":\"forged\"}"}"#
    )
    #expect(
      lines[1].contains(#""operation":"read-write","decision":"approved","secret":"otpauth","program":"/"#))
    #expect(try Files.status(log.path)?.permissions == 0o600)
  }

  /// With another process that writes to the same files.
  @Test func keepsWhatFitsIntoTwoFiles() throws {
    let other = AccessLog(stateFolder: folder, limit: 400)
    for number in 0..<40 { (number % 2 == 0 ? log : other).note(event("item \(number)")) }
    let kept = try lines(log.olderPath) + lines(log.path)
    #expect(log.failure == 0 && other.failure == 0 && kept.count >= 5 && kept.count <= 12)
    for (line, number) in zip(kept.reversed(), (0..<40).reversed()) {
      #expect(line.contains("\"item \(number)\""))
    }
    #expect(try Files.names(in: folder).sorted() == ["access.log", "access.log.1"])
  }

  @Test func itemsWithoutRulesAreNotedOnDemand() throws {
    #expect(log.isOn && log.takes(guarded: true) && !log.takes(guarded: false))
    try log.note(.everything)
    #expect(log.takes(guarded: true) && log.takes(guarded: false))
    try log.note(.nothing)
    #expect(!log.isOn && !log.takes(guarded: true) && !log.takes(guarded: false))
    log.note(event("a"))
    // That it is switched off is recorded itself.
    log.note(AccessEvent(.record, nil, by: nil, .off, at: Timestamp(seconds: 0)))
    #expect(try lines(log.path).map { $0.contains(#""decision":"off""#) } == [true])
    try log.note(.guarded)
    #expect(log.takes(guarded: true) && !log.takes(guarded: false))
  }
}
