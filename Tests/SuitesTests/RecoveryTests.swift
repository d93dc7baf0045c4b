import Glibc
import Model
import Store
import Suites
import Testing

/// What is found after a power cut that came shortly after a commit. `PowerLossTests` cut at any moment.
@Suite(.timeLimit(.minutes(1))) struct RecoveryTests {
  let sandbox = SuiteSandbox()

  /// A suite of which the last commit is perhaps not on the disk: the version before it, and both their names.
  private func unsettled() throws -> (name: String, bytes: [UInt8], time: timespec) {
    let engine = sandbox.engine()
    _ = try engine.create("a")
    try engine.set("k", .string("old"), in: "a")
    try engine.synchronize("a")
    try engine.set("k", .string("new"), in: "a")
    let name = try #require(sandbox.names(sandbox.folder).first { $0.hasPrefix(".keyhole-") })
    var status = stat()
    try #require(unsafe stat(sandbox.path("a"), &status) == 0)
    return (name, sandbox.bytes(sandbox.folder + "/" + name), status.st_mtim)
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

  /// What is damaged is somebody else's doing then, and what is beside it may be needed.
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

  @Test func commitIsAloneSoonAfterwards() async throws {
    let name = try unsettled().name
    var events = [UInt8](repeating: 0, count: 4096)
    let watch = inotify_init1(Int32(IN_CLOEXEC))
    defer { close(watch) }
    try #require(unsafe inotify_add_watch(watch, sandbox.folder, UInt32(IN_DELETE)) >= 0)
    // The suite's time limit ends a wait in vain.
    while sandbox.names(sandbox.folder).contains(name) {
      try #require(unsafe read(watch, &events, events.count) > 0)
    }
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
