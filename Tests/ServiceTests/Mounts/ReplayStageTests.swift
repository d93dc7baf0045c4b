import Glibc
import Platform
import Testing

@testable import Service

/// Lines from the process that serves the mount, performed in an ordinary folder.
@Suite struct ReplayStageTests {
  private let folder: TemporaryFolder
  private let stage: ReplayStage

  init() throws {
    folder = try TemporaryFolder()
    stage = try #require(ReplayStage(device: folder.device, mountPoint: "/tmp"))
  }

  private func perform(_ letter: Character, _ name: String) {
    stage.perform("\(letter) \(folder.path.dropFirst("/tmp/".count))/\(name)")
  }

  @Test func filesAndFoldersComeAndGo() {
    perform("c", "file with blanks")
    perform("C", "folder")
    #expect(folder.names == ["file with blanks", "folder"])
    perform("d", "file with blanks")
    perform("D", "folder")
    #expect(folder.names.isEmpty)
  }

  @Test func writeLeavesTheLength() throws {
    folder.write("file")
    for letter in "mc" as String {
      let events = try Inotify()
      _ = try events.watch(folder.path + "/file", [.changed, .closedAfterWriting, .attributes])
      perform(letter, "file")
      // Two `struct inotify_event` without names: MODIFY and CLOSE_WRITE.
      let bytes = events.read()
      let masks = stride(from: 4, to: bytes.count, by: 16).map { bytes[$0] }
      #expect(masks == [UInt8(IN_MODIFY), UInt8(IN_CLOSE_WRITE)], "\(letter)")
      var status = stat()
      unsafe stat(folder.path + "/file", &status)
      #expect(status.st_size == 0)
    }
  }

  @Test func attributesAreTheModesOfTheTree() {
    folder.write("file")
    perform("C", "folder")
    for (letter, name, mode) in [("a", "file", 0o600), ("A", "folder", 0o700)]
      as [(Character, String, mode_t)]
    {
      unsafe chmod("\(folder.path)/\(name)", 0o500)
      perform(letter, name)
      var status = stat()
      unsafe stat("\(folder.path)/\(name)", &status)
      #expect(status.st_mode & 0o777 == mode, "\(name)")
    }
  }

  @Test(arguments: ["", "c", "d ", "x /tmp", "no slash"])
  func otherLineDoesNothing(line: String) {
    stage.perform(line)
    perform("x", "file")
    #expect(folder.names.isEmpty)
  }

  /// At the path of a mount that is gone may be the folder below it.
  @Test func otherFileSystemIsLeftAlone() throws {
    let other = try #require(ReplayStage(device: "0:99999", mountPoint: "/tmp"))
    other.perform("c \(folder.path.dropFirst("/tmp/".count))/file")
    #expect(folder.names.isEmpty)
  }

  @Test func symbolicLinkIsNotFollowed() {
    let link = folder.path + "/link"
    unsafe symlink(folder.path, link)
    stage.perform("c \(link.dropFirst("/tmp/".count))/file")
    #expect(folder.names == ["link"])
  }

  @Test(arguments: ["", "8", "8:x", "8:1:2", "-1:2", "4294967296:1"])
  func otherTextIsNoDevice(text: String) {
    #expect(ReplayStage(device: text, mountPoint: "/tmp") == nil)
  }
}
