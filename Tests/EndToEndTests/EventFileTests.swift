import Glibc
import Testing

/// Section 9: `.keyhole/events`.
@Suite(.timeLimit(.minutes(1))) struct EventFileTests {
  private static func open(_ keyhole: MountedKeyhole, _ flags: Int32 = 0) throws -> OpenFile {
    try OpenFile(keyhole / ".keyhole/events", O_RDONLY | flags)
  }

  private static func isReady(_ file: OpenFile, within milliseconds: Int32 = 0) -> Bool {
    var entry = pollfd(fd: file.descriptor, events: Int16(POLLIN), revents: 0)
    return unsafe poll(&entry, 1, milliseconds) == 1 && entry.revents & Int16(POLLIN) != 0
  }

  @Test func lineSaysWhatHappened() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        mkdir defaults/s; echo 1 > defaults/s/k; echo 2 > defaults/s/k; mv defaults/s/k defaults/s/l
        rm defaults/s/l
        """)
      let file = try Self.open(keyhole)
      var text = ""
      while text.split(separator: "\n").count < 5 { text += String(decoding: try file.read(), as: UTF8.self) }
      let time = #/"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",/#
      #expect(text.matches(of: time).count == 5)
      #expect(
        text.replacing(time, with: "") == """
          {"seq":1,"kind":"created","path":"defaults/s","origin":"mount"}
          {"seq":2,"kind":"created","path":"defaults/s/k","origin":"mount"}
          {"seq":3,"kind":"modified","path":"defaults/s/k","origin":"mount"}
          {"seq":4,"kind":"moved","path":"defaults/s/l","from":"defaults/s/k","origin":"mount"}
          {"seq":5,"kind":"deleted","path":"defaults/s/l","origin":"mount"}

          """)
      try keyhole.check(
        "wc -l < .keyhole/status > /dev/null; jq -r .kind <(timeout 1 cat .keyhole/events) | tail -1",
        prints: "deleted\n")
    }
  }

  @Test func endOfTheLogIsNoEndOfTheFile() async throws {
    try await withKeyhole { keyhole in
      let blocking = try keyhole.launch(["/usr/bin/head", "-n", "1", ".keyhole/events"])
      let file = try Self.open(keyhole, O_NONBLOCK)
      #expect(failure { _ = try file.read() } == .again)
      #expect(!Self.isReady(file) && !blocking.hasEnded)
      try System.mkdir(keyhole / "defaults/s")
      #expect(Self.isReady(file, within: 10_000))
      #expect(try blocking.finish().text.contains(#""path":"defaults/s""#))
      #expect(String(decoding: try file.read(), as: UTF8.self).hasSuffix("}\n"))
      #expect(failure { _ = try file.read() } == .again && !Self.isReady(file))
      // Its size is its length so far, and from there on there is nothing yet.
      let size = try System.status(keyhole / ".keyhole/events").st_size
      #expect(lseek(file.descriptor, 0, SEEK_END) == size)
      #expect(failure { _ = try file.read() } == .again)
      try System.mkdir(keyhole / "defaults/t")
      #expect(Self.isReady(file, within: 10_000))
      #expect(String(decoding: try file.read(), as: UTF8.self).contains("defaults/t"))
      #expect(lseek(file.descriptor, size, SEEK_SET) == size)
      #expect(String(decoding: try file.read(), as: UTF8.self).contains("defaults/t"))
      #expect(failure { _ = try OpenFile(keyhole / ".keyhole/events", O_WRONLY) } == .denied)
      try keyhole.check(
        "ls -A; ls .keyhole", prints: "defaults\nkeychain\ntemplates\nviews\nevents\nhistory\nstatus\n")
    }
  }

  @Test func waitingReaderCanBeInterrupted() async throws {
    try await withKeyhole { keyhole in
      for signal in [SIGINT, SIGTERM, SIGKILL] {
        let reader = try keyhole.launch(["/bin/cat", ".keyhole/events"])
        let waits = holds { reader.isReadingEvents }
        #expect(waits)
        reader.signal(signal)
        #expect(try reader.waitForEnd(until: Deadline(in: .seconds(30))) == 128 + signal)
      }
      // No reader is left to be notified.
      try System.mkdir(keyhole / "defaults/s")
      try keyhole.check("head -n 1 .keyhole/events | jq -r .path", prints: "defaults/s\n")
    }
  }

  @Test(arguments: ["", "-n 0", "-n 100"]) func tailFollows(option: String) async throws {
    try await withKeyhole { keyhole in
      let tail = Watcher(try keyhole.world.launch("exec tail \(option) -f \"$MOUNT/.keyhole/events\""))
      let reads = holds { tail.program.hasEventsOpen }
      #expect(reads)
      // Where the log is empty yet, and where it is not.
      for name in ["a", "b"] {
        var number = 0
        while true {
          number += 1
          try System.mkdir(keyhole / "defaults/\(name)\(number)")
          if let line = try? tail.program.line(within: .seconds(3)), line.contains("defaults/\(name)") {
            break
          }
          try #require(number < 10)
        }
      }
    }
  }

  @Test func manyReadersEachGetEverything() async throws {
    try await withKeyhole { keyhole in
      let readers = try (0..<20).map { _ in
        try keyhole.launch(["/usr/bin/head", "-n", "50", ".keyhole/events"])
      }
      for number in 0..<50 { try System.mkdir(keyhole / "defaults/s\(number)") }
      let texts = try readers.map { try $0.finish().text }
      #expect(Set(texts).count == 1 && texts[0].contains("defaults/s49"))
    }
  }

  /// Processes that need a page wait for it without a signal being able to end them: it comes at once.
  @Test func mappingNeverWaits() async throws {
    try await withKeyhole { keyhole in
      let file = try Self.open(keyhole)
      #expect(failure { _ = try file.mappedBytes(4096, MAP_SHARED) } == .noDevice)
      #expect(try file.mappedBytes(1, MAP_PRIVATE) == [0x20])
      let waiting = try keyhole.launch(["/usr/bin/head", "-n", "1", ".keyhole/events"])
      try System.mkdir(keyhole / "defaults/s")
      #expect(try waiting.finish().text.contains("defaults/s"))
      let size = Int(try System.status(keyhole / ".keyhole/events").st_size)
      let mapped = String(decoding: try file.mappedBytes(size, MAP_PRIVATE), as: UTF8.self)
      #expect(mapped == " " + String(decoding: try file.read(), as: UTF8.self))
    }
  }

  @Test func selectAndEpollWait() async throws {
    try await withKeyhole { keyhole in
      let script = """
        $| = 1; sysopen(F, $ARGV[0], 0) or die; my $bits = ''; vec($bits, fileno(F), 1) = 1;
        print "waiting\\n"; my $n = select(my $ready = $bits, undef, undef, 10); sysread(F, my $line, 4096);
        print "$n $line";
        """
      let program = try keyhole.launch(["/usr/bin/perl", "-e", script, ".keyhole/events"])
      #expect(try program.line() == "waiting")
      try System.mkdir(keyhole / "defaults/s")
      #expect(try program.line()?.hasPrefix("1 {\"seq\":1,") == true)
    }
  }
}

extension Program {
  /// Whether the program, or one that it became, has the events open.
  fileprivate var hasEventsOpen: Bool {
    ((try? System.names("/proc/\(process)/fd")) ?? []).contains { name in
      System.target(ofLink: "/proc/\(process)/fd/\(name)").hasSuffix("/.keyhole/events")
    }
  }

  /// Whether it waits in read(2) of them.
  fileprivate var isReadingEvents: Bool {
    hasEventsOpen && (try? System.text("/proc/\(process)/syscall"))?.hasPrefix("0 ") == true
  }
}
