import Glibc
import LossyFileSystem
import Testing

/// The disk itself, without which the other tests could not fail.
@Suite struct LossyDiskTests {
  /// Runs a script in the folder of a mounted disk; what a power loss then leaves of a file.
  private static func survivor(_ path: String, _ survival: Survival, after script: String) throws -> String? {
    try withMount(PowerLossTests.home(), cuts: .never) { mount in
      try Child(["/bin/sh", "-ec", "cd \"$0\"; \(script)", mount.path]).finish()
      return mount.disk.survivor(survival).bytes(path).map { String(decoding: $0, as: UTF8.self) }
    }
  }

  @Test(arguments: [Survival.nothing, .names, .some(seed: 1)])
  func synchronisedFileAndNameSurvive(_ survival: Survival) throws {
    let script = "echo text > data/file; sync data/file; sync data"
    #expect(try Self.survivor("data/file", survival, after: script) == "text\n")
  }

  @Test func nameOfSynchronisedFileIsLost() throws {
    #expect(try Self.survivor("data/file", .nothing, after: "echo text > data/file; sync data/file") == nil)
  }

  @Test func bytesWithoutFileSynchronisationAreLost() throws {
    #expect(try Self.survivor("data/file", .nothing, after: "echo text > data/file; sync data") == "")
  }

  @Test func renameSurvivesWithoutBytes() throws {
    let script = "echo old > data/file; sync data/file data; echo new > data/new; mv data/new data/file"
    #expect(try Self.survivor("data/file", .nothing, after: script) == "old\n")
    #expect(try Self.survivor("data/file", .names, after: script) == "")
  }

  @Test func unlinkIsLostWithoutFolderSynchronisation() throws {
    let script = "echo text > data/file; sync data/file data; rm data/file"
    #expect(try Self.survivor("data/file", .nothing, after: script) == "text\n")
    #expect(try Self.survivor("data/file", .nothing, after: script + "; sync data") == nil)
  }

  @Test func pagesAreTorn() throws {
    let script = """
      yes old | head -c 40960 > data/file; sync data/file data; \
      yes new | head -c 40960 | dd of=data/file conv=notrunc bs=4096 2> /dev/null
      """
    let text = try #require(try Self.survivor("data/file", .some(seed: 3), after: script))
    #expect(text.contains("old") && text.contains("new"))
    #expect(text.utf8.count == 40960)
  }

  /// Ten pages that are emptied: they are all there, or none is; what is written afterwards may be missing.
  @Test func cutIsOneChange() throws {
    let script = """
      yes old | head -c 40960 > data/file; sync data/file data; \
      : > data/file; yes new | head -c 8192 >> data/file
      """
    let texts = try (1...40).map { seed in
      try #require(try Self.survivor("data/file", .some(seed: seed), after: script))
    }
    for text in texts where text.contains("old") {
      #expect(text.utf8.count == 40960 && !text.contains("new") && !text.contains("\0"))
    }
    #expect(texts.contains { $0.contains("old") } && texts.contains { $0.contains("new") })
  }

  @Test func newFolderIsLostWithItsFiles() throws {
    let script = "mkdir data/new; echo text > data/new/file; sync data/new/file data/new"
    #expect(try Self.survivor("data/new/file", .nothing, after: script) == nil)
    #expect(try Self.survivor("data/new/file", .nothing, after: script + "; sync data") == "text\n")
  }
}
