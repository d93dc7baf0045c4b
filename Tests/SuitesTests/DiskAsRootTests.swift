import Glibc
import Model
import Store
import Suites
import Testing

/// Disks that are full or read-only. They are mounted for one test, which takes root.
@Suite(.timeLimit(.minutes(1)), .enabled(if: geteuid() == 0), .serialized) struct DiskAsRootTests {
  let sandbox = SuiteSandbox()

  private func mounted(_ arguments: [String], _ body: (String) throws -> Void) throws {
    let place = sandbox.root + "/disk"
    unsafe mkdir(place, 0o700)
    try #require(SuiteSandbox.run(["mount"] + arguments + [place]) == 0)
    defer { SuiteSandbox.run(["umount", "-l", place]) }
    try body(place)
  }

  @Test func aFullDiskKeepsTheOldValue() throws {
    try mounted(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]) { disk in
      let engine = PropertyListFolder(folder: disk, stateFolder: sandbox.state)
      _ = try engine.create("a")
      try engine.set("k", .string("old"), in: "a")
      let big = SettingValue.string(ExactString(String(repeating: "x", count: 100_000)))
      #expect(throws: StoreError.noSpace) { try engine.set("k", big, in: "a") }
      #expect(try engine.values("a") == ["k": .string("old")])
      #expect(sandbox.names(disk) == ["a.plist"], "the temporary file is gone")
      try engine.set("k", .string("new"), in: "a")
      try engine.synchronize("a")
      SuiteSandbox.run(["/bin/sh", "-c", "cat /dev/zero > \"$0\" 2>&-", disk + "/filler"])
      #expect(try engine.room().availableBlocks == 0)
      #expect(throws: StoreError.noSpace) { try engine.set("k", .string("newer"), in: "a") }
      #expect(throws: StoreError.noSpace) { try engine.create("b") }
      #expect(try engine.values("a") == ["k": .string("new")])
      #expect(sandbox.names(disk) == ["a.plist", "filler"])
    }
  }

  @Test(arguments: [1, 40]) func onAFullDiskKeysCanBeRemoved(_ keys: Int) throws {
    try mounted(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]) { disk in
      let engine = PropertyListFolder(folder: disk, stateFolder: sandbox.state)
      _ = try engine.create("a")
      for key in 0..<keys { try engine.set(ExactString("k\(key)"), .string("value"), in: "a") }
      try engine.synchronize("a")
      #expect(sandbox.names(disk).contains(".keyhole-reserve"))
      SuiteSandbox.run(["/bin/sh", "-c", "cat /dev/zero > \"$0\" 2>&-", disk + "/filler"])
      #expect(throws: StoreError.noSpace) { try engine.set("k0", .string("other"), in: "a") }
      for key in 0..<keys {
        _ = try engine.update("a", known: nil) { $0.settings[ExactString("k\(key)")] = nil }
      }
      #expect(try engine.values("a") == [:])
      try engine.remove("a")
    }
  }

  @Test func whereNoReserveFitsTheLastKeyCanBeRemoved() throws {
    try mounted(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]) { disk in
      let engine = PropertyListFolder(folder: disk, stateFolder: sandbox.state)
      _ = try engine.create("a")
      try engine.set("k", .string("value"), in: "a")
      try engine.synchronize("a")
      SuiteSandbox.run(["/bin/sh", "-c", "cat /dev/zero > \"$0\" 2>&-", disk + "/filler"])
      _ = try engine.update("a", known: nil) { $0.settings["k"] = nil }
      #expect(try PropertyListFolder(folder: disk, stateFolder: sandbox.state).values("a") == [:])
      try engine.remove("a")
    }
  }

  @Test func aDiskThatBecameReadOnlyRefusesBeforeAWrite() throws {
    let image = sandbox.root + "/image"
    try #require(SuiteSandbox.run(["truncate", "-s", "8M", image]) == 0)
    try #require(SuiteSandbox.run(["mkfs.ext4", "-q", image]) == 0)
    try mounted(["-o", "loop", image]) { disk in
      let engine = PropertyListFolder(folder: disk, stateFolder: sandbox.state)
      _ = try engine.create("a")
      #expect(try engine.readOnlyReason(of: "a") == nil)
      // The state of ext4 after an error of the disk.
      try #require(SuiteSandbox.run(["mount", "-o", "remount,abort", disk]) == 0)
      #expect(try engine.readOnlyReason(of: "a") != nil)
      #expect(throws: StoreError.self) { try engine.set("k", .bool(true), in: "a") }
      #expect(try engine.values("a") == [:])
    }
  }

  @Test func aReadOnlyDiskCanBeRead() throws {
    sandbox.write(plist("<key>a</key><true/>"), to: sandbox.path("a"))
    sandbox.write(plist(""), to: sandbox.path("empty"))
    try mounted(["--bind", sandbox.folder]) { disk in
      try #require(SuiteSandbox.run(["mount", "-o", "remount,ro,bind", disk]) == 0)
      let engine = PropertyListFolder(folder: disk, stateFolder: disk + "/state")
      let contents = try #require(try engine.read("a"))
      #expect(contents.readOnly != nil && contents.settings["a"]?.value == .bool(true))
      let reason = StoreError.readOnly(reason: "its file system is mounted read-only")
      #expect(throws: reason) { try engine.set("a", .bool(false), in: "a") }
      #expect(throws: reason) { try engine.remove("empty") }
      #expect(throws: reason) { try engine.rename("a", to: "b") }
      #expect(throws: StoreError.self) { try engine.create("c") }
      #expect(try sandbox.engine().values("a") == ["a": .bool(true)])
    }
  }

  @Test func aFullStateFolderCostsTimesOnly() throws {
    try mounted(["-t", "tmpfs", "-o", "size=4k,nr_inodes=2", "tmpfs"]) { disk in
      let engine = PropertyListFolder(folder: sandbox.folder, stateFolder: disk)
      _ = try engine.create("a")
      let first = try engine.set("x", .integer(1), in: "a")
      let second = try engine.set("y", .integer(2), in: "a")
      #expect(second.settings["x"] == first.settings["x"])
      let third = try engine.read("a", since: second)
      #expect(third?.settings == second.settings, "they last as long as the contents")
    }
  }

  /// setfsuid(2), which Glibc's Swift module does not show.
  private static var setfsuid: (@convention(c) (uid_t) -> Int32)? {
    guard let symbol = unsafe dlsym(nil, "setfsuid") else { return nil }
    return unsafe unsafeBitCast(symbol, to: (@convention(c) (uid_t) -> Int32).self)
  }

  @Test func anotherUsersModesAreObeyed() throws {
    sandbox.write(plist("<key>a</key><true/>"), to: sandbox.path("a"))
    sandbox.write(plist("<key>a</key><true/>"), to: sandbox.path("secret"))
    unsafe chmod(sandbox.path("a"), 0o444)
    unsafe chmod(sandbox.path("secret"), 0o200)
    for path in [sandbox.root, sandbox.folder, sandbox.path("a"), sandbox.path("secret")] {
      unsafe chown(path, 65534, 65534)
    }
    // Of this thread alone: the kernel's checks of files are another user's from here on.
    let setfsuid = try #require(Self.setfsuid)
    _ = setfsuid(65534)
    defer { _ = setfsuid(0) }
    let engine = sandbox.engine()
    #expect(try engine.read("a")?.readOnly == "its file is not writable")
    #expect(throws: StoreError.readOnly(reason: "its file is not writable")) {
      try engine.set("b", .bool(true), in: "a")
    }
    #expect(throws: StoreError.self) { try engine.read("secret") }
    #expect(engine.problems().map(\.subject) == [sandbox.path("secret")])
  }
}
