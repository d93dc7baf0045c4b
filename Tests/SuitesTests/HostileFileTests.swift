import Glibc
import Model
import Store
import Testing

@testable import Suites

/// Files that are no suites, or not now: they are left as they are, and everything else goes on.
@Suite(.timeLimit(.minutes(1))) struct HostileFileTests {
  let sandbox = SuiteSandbox()

  static let damaged: [String: [UInt8]] = [
    "empty": [], "text": Array("hello\n".utf8), "cut": Array(plist("<key>a</key><true/>").utf8.dropLast(12)),
    "array": Array("<plist version=\"1.0\"><array/></plist>".utf8),
    "zeros": [UInt8](repeating: 0, count: 4096),
    "binary": Array("bplist00".utf8) + [UInt8](repeating: 0xFF, count: 100), "magic": Array("bplist00".utf8),
    "number": Array(plist("<key>a</key><integer>x</integer>").utf8),
    "utf8": Array(plist("<key>a</key><string>").utf8) + [0xFF],
    "twice": Array((plist("") + plist("")).utf8), "openstep": Array("{ a = b; }".utf8),
    "json": Array(#"{"a":1}"#.utf8),
    "scalar": Array("<plist version=\"1.0\"><string>x</string></plist>".utf8),
    "deep": Array((String(repeating: "<array>", count: 100_000)).utf8),
  ]

  @Test(arguments: damaged.keys.sorted())
  func whatIsDamagedIsNeverOverwritten(_ name: String) throws {
    let bytes = try #require(Self.damaged[name])
    sandbox.write(bytes, to: sandbox.path("a"))
    let engine = sandbox.engine()
    let old = try engine.stamp(of: "a")
    #expect(old != nil, "it is there, for the folder")
    #expect(throws: StoreError.self) { try engine.read("a") }
    #expect(throws: StoreError.self) { try engine.set("k", .bool(true), in: "a") }
    #expect(throws: StoreError.exists) { try engine.create("a") }
    #expect(throws: StoreError.self) { try engine.remove("a") }
    _ = try engine.create("good")
    #expect(throws: StoreError.self) { try engine.rename("good", to: "a") }
    try engine.remove("good")
    #expect(sandbox.bytes(sandbox.path("a")) == bytes)
    #expect(try engine.stamp(of: "a") == old)
    let problem = try #require(engine.problems().first)
    #expect(problem.subject == sandbox.path("a") && !problem.remedy.isEmpty)
    #expect(sandbox.names(sandbox.folder) == ["a.plist"])
  }

  @Test func whatIsHalfWrittenIsReadAgain() throws {
    let (text, path) = (Array(plist("<key>a</key><integer>1</integer>").utf8), sandbox.path("a"))
    for half in [0, 1, 120, text.count - 10] {
      sandbox.write(text.prefix(half), to: path)
      let file = try #require(SuiteFile(folder: sandbox.folder, suite: "a"))
      var pauses = 0
      let content = try file.read {
        pauses += 1
        if pauses == 3 { sandbox.write(text, to: path) }
      }
      #expect(content?.values == ["a": .integer(1)] && pauses == 3)
    }
  }

  @Test func anOldDamagedFileCostsNoWaiting() throws {
    sandbox.write("hello", to: sandbox.path("a"))
    SuiteSandbox.run(["touch", "-d", "2020-01-01", sandbox.path("a")])
    let file = try #require(SuiteFile(folder: sandbox.folder, suite: "a"))
    #expect(throws: StoreError.self) { try file.read { Issue.record("it waits for the rest of the file") } }
  }

  @Test func whatIsNoFileIsNoSuite() throws {
    for kind in [
      "mkfifo \"$0\"", "mkdir \"$0\"", "ln -s nowhere \"$0\"", "ln -s \"$0\" \"$0\"",
      "ln -s /dev/zero \"$0\"",
    ] {
      let path = sandbox.path("a")
      #expect(SuiteSandbox.run(["/bin/sh", "-c", kind, path]) == 0)
      let engine = sandbox.engine()
      #expect(
        try engine.suites().isEmpty && engine.read("a") == nil && engine.stamp(of: "a") == nil, "\(kind)")
      #expect(throws: StoreError.notFound) { try engine.set("k", .bool(true), in: "a") }
      #expect(throws: StoreError.notFound) { try engine.remove("a") }
      #expect(throws: StoreError.notFound) { try engine.rename("a", to: "b") }
      #expect(throws: StoreError.exists) { try engine.create("a") }
      #expect(engine.problems().count == 1)
      SuiteSandbox.run(["rm", "-rf", path])
    }
  }

  @Test func aHugeFileIsNotRead() throws {
    sandbox.write("", to: sandbox.path("a"))
    unsafe truncate(sandbox.path("a"), 64 << 20 + 1)
    #expect(throws: StoreError.tooLarge(limit: 64 << 20)) { try sandbox.engine().read("a") }
    #expect(try sandbox.engine().suites().count == 1)
    #expect(sandbox.engine().problems().count == 1)
  }

  @Test func foreignFilesAreNoSuites() throws {
    for name in ["a.plist.bak", "b.txt", ".plist", ".keyhole-x.tmp", "c.PLIST", "plist"] {
      sandbox.write(plist(""), to: sandbox.folder + "/" + name)
    }
    let odd =
      sandbox.folder.utf8.map { CChar(bitPattern: $0) } + [0x2F, -1, 0x2E, 0x70, 0x6C, 0x69, 0x73, 0x74, 0]
    close(unsafe open(odd, O_CREAT | O_WRONLY, 0o600))
    let engine = sandbox.engine()
    #expect(try engine.suites().isEmpty)
    #expect(engine.problems().count == 2, "“.plist” and the name that is not UTF-8")
  }

  @Test func aSharedObjectDoesNotUnfoldForEver() throws {
    // Each array holds the next one twice: 2⁶⁴ values in 400 bytes; the last but one holds itself.
    for target in [63, 10] {
      var bytes = Array("bplist00".utf8)
      var offsets: [UInt8] = []
      for index in 0..<64 {
        offsets += [UInt8(bytes.count >> 8), UInt8(bytes.count & 255)]
        let next = UInt8(index == 62 ? target : index + 1)
        bytes += index == 63 ? [0x09] : [0xA2, next, next]
      }
      let table = bytes.count
      bytes += offsets + [0, 0, 0, 0, 0, 0, 2, 1]
      for number in [64, 0, table] { bytes += [0, 0, 0, 0, 0, 0, UInt8(number >> 8), UInt8(number & 255)] }
      sandbox.write(bytes, to: sandbox.path("a"))
      #expect(throws: StoreError.self) { try sandbox.engine().read("a") }
    }
  }

  @Test func everyChangedByteOfABinaryListIsHarmless() throws {
    let values: [ExactString: SettingValue] = [
      "a": .array([.string("x\0é"), .integer(-1), .real(1)]),
      "b": .dictionary(["c": .data([1, 2]), "d": .date(0)]),
    ]
    let engine = sandbox.engine()
    _ = try engine.create("a")
    for (key, value) in values { try engine.set(key, value, in: "a") }
    let bytes = sandbox.bytes(sandbox.path("a"))
    #expect(bytes.starts(with: "bplist00".utf8))
    for index in bytes.indices {
      for flip in [0x01, 0x80, 0xFF] as [UInt8] {
        var damaged = bytes
        damaged[index] ^= flip
        // Old enough that nothing is waited for; what it reads as does not matter, that it returns does.
        sandbox.write(damaged, to: sandbox.path("b"))
        var times = [timespec(tv_sec: 1000, tv_nsec: 0), timespec(tv_sec: 1000, tv_nsec: 0)]
        unsafe utimensat(AT_FDCWD, sandbox.path("b"), &times, 0)
        _ = try? engine.read("b")
      }
    }
    #expect(try engine.values("a") == values)
  }
}
