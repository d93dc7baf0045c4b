import Testing

@testable import Platform

@Suite struct MountTableTests {
  private func entry(_ line: String) throws -> MountTable.Entry {
    try #require(MountTable(text: Array("\(line)\n".utf8)).entries.first)
  }

  @Test func lineIsAMount() throws {
    let entry = try entry(
      #"36 35 0:46 / /home/a\040b rw,nosuid shared:1 master:2 - fuse.keyhole ke\134y rw,user_id=7,group_id=8"#
    )
    #expect(entry.path == "/home/a b" && entry.source == #"ke\y"# && entry.type == "fuse.keyhole")
    #expect(entry.user == 7 && entry.group == 8 && entry.isKeyhole(of: 7) && !entry.isKeyhole(of: 8))
    #expect(entry.id == "36" && entry.device == "0:46" && !entry.hasFailed)
  }

  @Test(arguments: ["", "36 35 98:0 /", "36 35 98:0 / /mnt rw - ext4", "a b c d e f g h i"])
  func otherLinesAreLeftOut(line: String) {
    #expect(MountTable(text: Array(line.utf8)).entries.isEmpty)
  }

  @Test(arguments: [
    ("rw", "rw,errors=remount-ro", false), ("rw", "ro,errors=remount-ro", true), ("ro", "ro", false),
    ("rw", "rw,emergency_ro", true), ("ro", "ro,emergency_ro", true),
  ])
  func fileSystemThatFailedIsToldFromOneThatIsMountedReadOnly(mount: String, disk: String, hasFailed: Bool)
    throws
  {
    #expect(try entry("36 35 8:1 / /mnt \(mount) - ext4 /dev/sda1 \(disk)").hasFailed == hasFailed)
  }

  @Test func topmostMountOfAPathShows() {
    let text = "1 0 8:1 / /mnt rw - ext4 /dev/a rw\n2 1 8:2 / /mnt rw - xfs /dev/b rw\n"
    let table = MountTable(text: Array(text.utf8))
    #expect(table.entry(at: "/mnt")?.type == "xfs" && table.entry(at: "/m") == nil)
  }

  @Test func folderIsOnADisk() {
    #expect(MountedDisk(of: "/")?.target == "/")
    #expect(MountedDisk(of: "/no such folder") == nil)
  }
}
