import Glibc
import Synchronization
import Testing

/// Values that another process replaces by rename(2) while they are read, and files that have lost their name.
@Suite(.timeLimit(.minutes(2))) struct ReplacedFileTests {
  /// Of different lengths, the shorter in the longer.
  private static let values = ["short\n", String(repeating: "a much longer value ", count: 40) + "\n"]

  private static func replace(_ keyhole: MountedKeyhole, _ round: Int) throws {
    try System.write(keyhole / "defaults/s/.new", values[round % 2])
    try System.rename(keyhole / "defaults/s/.new", keyhole / "defaults/s/k")
  }

  /// Bounded by its number of rounds; the case itself is in `OpenWhileReplacedTests`.
  @Test func readerGetsOneValueWhole() async throws {
    try await withKeyhole { keyhole in
      try System.mkdir(keyhole / "defaults/s")
      try Self.replace(keyhole, 0)
      let isDone = Atomic(false)
      let rounds = Atomic(0)
      let writer = Thread {
        defer { isDone.store(true, ordering: .releasing) }
        for round in 1...1_000 {
          guard (try? Self.replace(keyhole, round)) != nil else { return }
          rounds.add(1, ordering: .relaxed)
        }
      }
      defer { writer.join() }
      var torn: [String] = []
      var count = 0
      while !isDone.load(ordering: .acquiring) {
        let file = try OpenFile(keyhole / "defaults/s/k", O_RDONLY)
        let text = String(decoding: try file.readAll(), as: UTF8.self)
        count += 1
        if !Self.values.contains(text) { torn.append(text) }
      }
      #expect(rounds.load(ordering: .relaxed) == 1_000)
      #expect(torn.isEmpty && count > 0, "\(torn.count) of \(count)")
    }
  }

  /// Without O_TRUNC, which waits for readers itself. It asks for sizes that no other process is to see.
  private static func rewrite(_ path: String, _ value: String) throws {
    let file = try OpenFile(path, O_WRONLY)
    try file.truncate(0)
    for _ in 0..<3 { _ = try file.status() }
    try file.write(value)
    _ = try System.status(path)
    try file.close()
  }

  /// A size that fstat(2) returns to a writer does not end a read of the stored value. Bounded by its number of rounds, in which a cut is rare; the case
  /// itself is in `OpenOptionsTests`.
  @Test func readerIsNotCutByASizeThatIsNotStored() async throws {
    try await withKeyhole { keyhole in
      try System.mkdir(keyhole / "defaults/s")
      let path = keyhole / "defaults/s/k"
      try System.write(path, Self.values[1])
      let isDone = Atomic(false)
      let rounds = Atomic(0)
      let writer = Thread {
        defer { isDone.store(true, ordering: .releasing) }
        for round in 0..<800 {
          guard (try? Self.rewrite(path, Self.values[round % 2])) != nil else { return }
          rounds.add(1, ordering: .relaxed)
        }
      }
      defer { writer.join() }
      var torn: [String] = []
      var count = 0
      while !isDone.load(ordering: .acquiring) {
        let text = String(decoding: try OpenFile(path, O_RDONLY).readAll(), as: UTF8.self)
        count += 1
        if !Self.values.contains(text) { torn.append(text) }
      }
      #expect(rounds.load(ordering: .relaxed) == 800)
      #expect(torn.isEmpty && count > 0, "\(torn.count) of \(count)")
    }
  }

  /// A change in place by another program than the mount: the new value is not cut at the old one's length.
  @Test func readerGetsWhatAnotherProgramStored() async throws {
    try await withKeyhole { keyhole in
      try System.mkdir(keyhole / "defaults/s")
      for round in 0..<100 {
        let value = try Self.store(keyhole, round)
        let text = try System.text(keyhole / "defaults/s/k")
        #expect(text == value, "\(round)")
        // The kernel keeps the size from here.
        #expect(try System.status(keyhole / "defaults/s/k").st_size == value.utf8.count)
      }
    }
  }

  private static func store(_ keyhole: MountedKeyhole, _ round: Int) throws -> String {
    let value = values[round % 2]
    try System.write(
      keyhole.world.config + "/s.plist",
      "<plist version=\"1.0\"><dict><key>k</key><string>\(value.dropLast())</string></dict></plist>\n")
    return value
  }

  /// Readers and programs that ask for the status meet the changes of another program at any moment.
  @Test func kernelKeepsTheSizeOfTheStoredValue() async throws {
    try await withKeyhole { keyhole in
      try System.mkdir(keyhole / "defaults/s")
      _ = try Self.store(keyhole, 0)
      for round in 1...20 {
        let isDone = Atomic(false)
        let readers = (0..<3).map { number in
          Thread {
            while !isDone.load(ordering: .acquiring) {
              if number == 0 {
                _ = try? System.status(keyhole / "defaults/s/k")
              } else {
                _ = try? OpenFile(keyhole / "defaults/s/k", O_RDONLY).readAll()
              }
            }
          }
        }
        var value = ""
        for change in 0..<10 + round % 2 { value = try Self.store(keyhole, change) }
        isDone.store(true, ordering: .releasing)
        for reader in readers { reader.join() }
        let file = try OpenFile(keyhole / "defaults/s/k", O_RDONLY)
        #expect(try file.readAll() == Array(value.utf8))
        #expect(try file.status().st_size == value.utf8.count)
      }
    }
  }

  @Test(arguments: ["unlink", "rename"]) func unnamedFileIsAFileLikeAnyOther(how: String) async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        mkdir -p defaults/s keychain/generic/S/A; echo 12345 > defaults/s/k; setfattr -n user.keyhole.type -v integer defaults/s/k
        printf old > keychain/generic/S/A/value; setfattr -n user.comment -v old keychain/generic/S/A
        """)
      let script = """
        import os, sys
        how, name, new, attribute = sys.argv[1:]
        file = os.open(name, os.O_RDWR)
        if how == "unlink":
          os.unlink(name)
          open(name, "w").write(new)
        else:
          scratch = os.path.dirname(name) + "/.new"
          open(scratch, "w").write(new)
          os.rename(scratch, name)
        def show():
          status = os.fstat(file)
          print(status.st_nlink, status.st_size, os.pread(file, 100, 0))
        show()
        print(os.getxattr(file, attribute), os.getxattr(name, attribute))
        os.setxattr(file, attribute, b"string")
        print(os.getxattr(file, attribute), os.getxattr(name, attribute))
        try: os.getxattr(file, "user.none")
        except OSError as error: print(os.strerror(error.errno))
        os.ftruncate(file, 2); show()
        os.pwrite(file, b"xyz", 2); show()
        os.utime(file, (1000000000, 1000000001))
        print(os.fstat(file).st_atime, os.fstat(file).st_mtime, os.stat(name).st_mtime > 1000000001)
        os.fsync(file); show()
        os.close(file)
        print(open(name).read())
        """
      try keyhole.check(
        "python3 -c '\(script)' \(how) defaults/s/k 678 user.keyhole.type",
        prints: """
          0 6 b'12345\\n'
          b'integer' b'integer'
          b'string' b'integer'
          No data available
          0 2 b'12'
          0 5 b'12xyz'
          1000000000.0 1000000001.0 True
          0 5 b'12xyz'
          678


          """)
      try keyhole.check(
        "python3 -c '\(script)' \(how) keychain/generic/S/A/value another user.comment",
        prints: """
          0 3 b'old'
          b'old' b'old'
          b'string' b'old'
          No data available
          0 2 b'ol'
          0 5 b'olxyz'
          1000000000.0 1000000001.0 True
          0 5 b'olxyz'
          another

          """)
    }
  }
}
