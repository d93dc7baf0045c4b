import Glibc
import Model
import Store
import Suites
import Testing

/// The suite after a power cut shortly after a commit. `PowerLossTests` cut at any moment.
@Suite(.timeLimit(.minutes(1))) struct RecoveryTests {
  let sandbox = SuiteSandbox()

  /// A suite whose last commit was perhaps not on the disk for a moment: the version before it, and its name then.
  private func unsettled() throws -> (name: String, bytes: [UInt8], time: timespec) {
    let engine = sandbox.engine()
    _ = try engine.create("a")
    try engine.set("k", .string("old"), in: "a")
    try engine.synchronize("a")
    let bytes = sandbox.bytes(sandbox.path("a"))
    let watch = try FolderEvents(sandbox.folder, IN_MOVED_TO)
    try engine.set("k", .string("new"), in: "a")
    let name = try watch.first { $0.hasPrefix(".keyhole-") }
    var status = stat()
    try #require(unsafe stat(sandbox.path("a"), &status) == 0)
    return (name, bytes, status.st_mtim)
  }

  /// The same on another disk, after the power cut: `left` is what there is of the last commit.
  private func afterPowerCut(
    leaving left: String, secondsLater: Int = 0
  ) throws -> (engine: PropertyListFolder, sandbox: SuiteSandbox, name: String) {
    let before = try unsettled()
    let other = SuiteSandbox()
    other.write(before.bytes, to: other.folder + "/" + before.name)
    other.write(left, to: other.path("a"))
    let time = timespec(tv_sec: before.time.tv_sec + secondsLater, tv_nsec: before.time.tv_nsec)
    try #require(unsafe utimensat(AT_FDCWD, other.path("a"), [time, time], 0) == 0)
    return (other.engine(), other, before.name)
  }

  @Test(arguments: ["", String(repeating: "\0", count: 300), String(plist("<key>k</key>").dropLast(20))])
  func incompleteVersionGivesWayToTheOneBeforeIt(left: String) throws {
    let (engine, disk, _) = try afterPowerCut(leaving: left)
    #expect(try engine.values("a") == ["k": .string("old")])
    #expect(disk.names(disk.folder) == ["a.plist"])
    try engine.set("k", .string("newer"), in: "a")
    #expect(try engine.values("a") == ["k": .string("newer")])
  }

  @Test func zerosInXMLAreNoValue() throws {
    let (engine, disk, _) = try afterPowerCut(leaving: plist("<key>k</key><string>\0\0\0</string>"))
    #expect(try engine.values("a") == ["k": .string("old")])
    #expect(disk.names(disk.folder) == ["a.plist"])
  }

  @Test func completeVersionStays() throws {
    let (engine, disk, name) = try afterPowerCut(leaving: plist("<key>k</key><string>new</string>"))
    #expect(try engine.values("a") == ["k": .string("new")])
    #expect(disk.names(disk.folder) == [name, "a.plist"])
    engine.removeLeftovers()
    #expect(disk.names(disk.folder) == ["a.plist"])
  }

  @Test func cleaningUpPutsBackFirst() throws {
    let (engine, disk, _) = try afterPowerCut(leaving: "")
    engine.removeLeftovers()
    #expect(disk.names(disk.folder) == ["a.plist"])
    #expect(try engine.values("a") == ["k": .string("old")])
  }

  /// Another program has damaged the file then, and the version beside it may be needed.
  @Test func fileThatIsNoSuccessorIsLeftAsItIs() throws {
    let (engine, disk, name) = try afterPowerCut(leaving: "", secondsLater: 11)
    #expect(throws: StoreError.self) { try engine.read("a") }
    engine.removeLeftovers()
    #expect(disk.names(disk.folder) == [name, "a.plist"])
    #expect(disk.bytes(disk.path("a")).isEmpty)
  }

  @Test func whatALivingProcessKeepsIsNotPutBack() throws {
    let (engine, disk, name) = try afterPowerCut(leaving: "")
    let file = unsafe open(disk.folder + "/" + name, O_RDONLY)
    defer { close(file) }
    try #require(flock(file, LOCK_EX | LOCK_NB) == 0)
    #expect(throws: StoreError.self) { try engine.read("a") }
    #expect(disk.names(disk.folder) == [name, "a.plist"])
  }

  @Test func commitIsAloneSoonAfterwards() throws {
    let watch = try FolderEvents(sandbox.folder, IN_DELETE)
    let name = try unsettled().name
    // The suite's time limit ends a wait in vain.
    #expect(try watch.first { $0 == name } == name)
    #expect(sandbox.names(sandbox.folder).filter { $0 != ".keyhole-reserve" } == ["a.plist"])
    #expect(try sandbox.engine().values("a") == ["k": .string("new")])
  }

  @Test func hardLinkOfAVersionIsNeverWritten() throws {
    let engine = sandbox.engine()
    _ = try engine.create("a")
    try engine.set("k", .string("old"), in: "a")
    let copy = sandbox.root + "/copy"
    try #require(unsafe link(sandbox.path("a"), copy) == 0)
    let before = sandbox.bytes(copy)
    for round in 0..<5 { try engine.set("k", .integer(Int128(round)), in: "a") }
    #expect(sandbox.bytes(copy) == before)
  }
}

/// The events of inotify(7) for the names in a folder.
final class FolderEvents {
  private let number: Int32

  init(_ folder: String, _ events: Int32) throws {
    number = inotify_init1(Int32(IN_CLOEXEC))
    try #require(unsafe inotify_add_watch(number, folder, UInt32(events)) >= 0)
  }

  deinit { close(number) }

  /// Waits for an event of such a name.
  func first(where isMeant: (String) -> Bool) throws -> String {
    while true {
      var bytes = [UInt8](repeating: 0, count: 4096)
      let count = unsafe read(number, &bytes, bytes.count)
      try #require(count > 0)
      if let name = Self.names(bytes[..<count]).first(where: isMeant) { return name }
    }
  }

  /// `struct inotify_event`: 12 bytes, the length of the name, the name with zeros behind it.
  private static func names(_ bytes: ArraySlice<UInt8>) -> [String] {
    var (names, rest): ([String], ArraySlice<UInt8>) = ([], bytes)
    while rest.count >= 16 {
      let length = Int(rest[rest.startIndex + 12]) | Int(rest[rest.startIndex + 13]) << 8
      names.append(String(decoding: rest.dropFirst(16).prefix(length).prefix { $0 != 0 }, as: UTF8.self))
      rest = rest.dropFirst(16 + length)
    }
    return names
  }
}
