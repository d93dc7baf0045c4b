import Glibc
import Model
import Store
import Suites
import Testing

/// How files are written: in one step, with what was there kept.
@Suite(.timeLimit(.minutes(1))) struct WritingTests {
  let sandbox = SuiteSandbox()

  private func mode(_ path: String) -> mode_t {
    var status = stat()
    return unsafe lstat(path, &status) == 0 ? status.st_mode : 0
  }

  @Test func theFileIsLaidOutAsApplesWritersDo() throws {
    let engine = sandbox.engine()
    _ = try engine.create("a")
    try engine.set("b", .array([.integer(1), .dictionary(["x": .data([1, 2])]), .array([])]), in: "a")
    try engine.set("a", .string("1\r<"), in: "a")
    #expect(
      sandbox.text(sandbox.path("a"))
        == """
        <?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
        <plist version="1.0">
        <dict>
        \t<key>a</key>
        \t<string>1&#13;&lt;</string>
        \t<key>b</key>
        \t<array>
        \t\t<integer>1</integer>
        \t\t<dict>
        \t\t\t<key>x</key>
        \t\t\t<data>
        \t\t\tAQI=
        \t\t\t</data>
        \t\t</dict>
        \t\t<array/>
        \t</array>
        </dict>
        </plist>

        """)
    #expect(mode(sandbox.path("a")) & 0o7777 == 0o600)
    try engine.synchronize("a")
    #expect(sandbox.names(sandbox.folder) == ["a.plist"], "nothing is left beside it")
  }

  @Test func aMissingFolderIsMadePrivate() throws {
    let engine = PropertyListFolder(folder: sandbox.root + "/x/y", stateFolder: sandbox.root + "/z/state")
    #expect(try engine.suites().isEmpty && engine.room().blocks > 0)
    _ = try engine.create("a")
    try engine.set("k", .bool(true), in: "a")
    #expect(mode(sandbox.root + "/x") & 0o7777 == 0o700)
    #expect(mode(sandbox.root + "/z/state/times") & 0o7777 == 0o700)
  }

  @Test func binaryIsReadAndBecomesXMLAtTheNextWrite() throws {
    let engine = sandbox.engine()
    _ = try engine.create("a")
    try engine.set("k", .string("\u{1}"), in: "a")
    #expect(sandbox.text(sandbox.path("a")).hasPrefix("bplist00"))
    try engine.set("k", .string("é"), in: "a")
    #expect(sandbox.text(sandbox.path("a")).hasPrefix("<?xml"))
    #expect(try engine.values("a") == ["k": .string("é")])
  }

  @Test func theModeOfTheFileIsKept() throws {
    sandbox.write(plist("<key>a</key><true/>"), to: sandbox.path("a"))
    unsafe chmod(sandbox.path("a"), 0o640)
    try sandbox.engine().set("b", .bool(false), in: "a")
    #expect(mode(sandbox.path("a")) & 0o7777 == 0o640)
  }

  @Test(.enabled(if: geteuid() == 0, "needs root")) func ownerOfTheFileIsKeptAsRoot() throws {
    sandbox.write(plist("<key>a</key><true/>"), to: sandbox.path("a"))
    unsafe chown(sandbox.path("a"), 12345, 54321)
    try sandbox.engine().set("b", .bool(false), in: "a")
    var status = stat()
    #expect(unsafe stat(sandbox.path("a"), &status) == 0 && status.st_uid == 12345 && status.st_gid == 54321)
  }

  @Test func aLinkStaysAndItsTargetIsWritten() throws {
    unsafe mkdir(sandbox.root + "/dotfiles", 0o700)
    let target = sandbox.root + "/dotfiles/settings"
    sandbox.write(plist("<key>a</key><true/>"), to: target)
    unsafe symlink("../dotfiles/settings", sandbox.path("a"))
    let engine = sandbox.engine()
    #expect(try engine.suites().count == 1)
    try engine.set("b", .integer(1), in: "a")
    #expect(mode(sandbox.path("a")) & S_IFMT == S_IFLNK)
    #expect(sandbox.text(target).contains("<key>b</key>"))
    try engine.synchronize("a")
    #expect(sandbox.names(sandbox.root + "/dotfiles") == ["settings"])
    try engine.rename("a", to: "c")
    #expect(mode(sandbox.path("c")) & S_IFMT == S_IFLNK)
    #expect(try engine.values("c")?.count == 2)
  }

  @Test func leftoversOfKilledWritersAreRemovedAndLiveOnesSpared() throws {
    let (dead, live) = (sandbox.folder + "/.keyhole-dead.tmp", sandbox.folder + "/.keyhole-live.tmp")
    for path in [dead, live, sandbox.folder + "/.keyhole-other"] { sandbox.write("<plist>", to: path) }
    let file = unsafe open(live, O_RDONLY)
    defer { close(file) }
    #expect(flock(file, LOCK_EX | LOCK_NB) == 0)
    sandbox.engine().removeLeftovers()
    #expect(sandbox.names(sandbox.folder) == [".keyhole-live.tmp", ".keyhole-other"])
  }

  /// A file that was just made and is not locked yet must not be taken for a leftover.
  @Test func cleaningUpNeverEndsWhatIsBeingWritten() async throws {
    let cleaner = Task.detached { [sandbox] in
      let engine = sandbox.engine()
      while !Task.isCancelled { engine.removeLeftovers() }
    }
    defer { cleaner.cancel() }
    let engine = sandbox.engine()
    for number in 0..<500 {
      _ = try engine.create(ExactString("s\(number)"))
      try engine.remove(ExactString("s\(number)"))
      await Task.yield()
    }
  }

  @Test func whatNoPropertyListCanHoldIsRefused() throws {
    let engine = sandbox.engine()
    _ = try engine.create("a")
    try engine.set("k", .integer(1), in: "a")
    let deep = (0..<512).reduce(SettingValue.integer(1)) { value, _ in .array([value]) }
    for value in [
      .integer(1 << 64), .integer(Int128(Int64.min) - 1), .date(SettingDate(seconds: .max)),
      .date(SettingDate(seconds: .min)), deep,
    ] {
      #expect(throws: StoreError.self) { try engine.set("k", .array([value]), in: "a") }
    }
    #expect(try engine.values("a") == ["k": .integer(1)])
  }

  @Test func theLargestValueHasRoomWhateverItHolds() throws {
    let engine = sandbox.engine()
    _ = try engine.create("a")
    let value = SettingValue.string(ExactString(String(repeating: "&", count: 16 << 20)))
    try engine.set("k", value, in: "a")
    #expect(try engine.values("a") == ["k": value])
    let before = sandbox.bytes(sandbox.path("a")).count
    let filler = SettingValue.data([UInt8](repeating: 1, count: 16 << 20))
    #expect(throws: StoreError.tooLarge(limit: 64 << 20)) {
      _ = try engine.update("a", known: nil) { contents in
        for number in 0..<4 { contents.settings[ExactString("\(number)")] = Setting(filler) }
      }
    }
    #expect(sandbox.bytes(sandbox.path("a")).count == before)
  }

  @Test func aWriterWithoutALockIsNotOverwritten() throws {
    let (engine, path) = (sandbox.engine(), sandbox.path("a"))
    _ = try engine.create("a")
    var rounds = 0
    _ = try engine.update("a", known: nil) { contents in
      rounds += 1
      if rounds == 1 { sandbox.write(plist("<key>theirs</key><true/>"), to: path) }
      if rounds == 2 {
        sandbox.write(plist("<key>theirs</key><false/>"), to: path + ".new")
        unsafe rename(path + ".new", path)
      }
      contents.settings["ours"] = Setting(.integer(Int128(rounds)))
    }
    #expect(try engine.values("a") == ["theirs": .bool(false), "ours": .integer(3)])
  }

  @Test func aHeldLockIsWaitedFor() async throws {
    let engine = sandbox.engine()
    _ = try engine.create("a")
    let file = unsafe open(sandbox.path("a"), O_RDONLY)
    #expect(flock(file, LOCK_EX) == 0)
    async let contents = engine.set("k", .bool(true), in: "a")
    #expect(try engine.values("a") == [:], "readers do not wait, and the writer has to")
    close(file)
    #expect(try await contents.settings.count == 1)
  }

  @Test func synchronizedSuitesAreOnTheDisk() throws {
    let engine = sandbox.engine()
    _ = try engine.create("a")
    try engine.synchronize("a")
    try engine.synchronize("missing")
  }
}
