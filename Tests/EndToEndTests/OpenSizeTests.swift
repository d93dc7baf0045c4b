import Glibc
import Testing

/// fstat(2) after open(2) tells the length that read(2) gives, while other processes change the file.
@Suite(.timeLimit(.minutes(5))) struct OpenSizeTests {
  /// Opens, asks for the size and the time, reads; prints how often the size was not the length, and how often it found more than one
  /// length. `descriptor`: how the file is opened.
  private static let reader = """
    import os, sys, threading
    wrong = 0
    lengths = set()
    # From now on the file changes all the time.
    while len(lengths) < 4: lengths.add(len(open(sys.argv[1]).read()))
    def read():
      global wrong
      for _ in range(int(sys.argv[2])):
        file = os.open(sys.argv[1], os.O_RDONLY)
        size = os.fstat(file).st_size
        again = os.fstat(file).st_size
        text = os.read(file, 1 << 16)
        if not (size == again == len(text)): wrong += 1
        lengths.add(len(text))
        os.close(file)
    threads = [threading.Thread(target=read) for _ in range(int(sys.argv[3]))]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    print(wrong, len(lengths) > 1)
    """
  /// Writes values of different lengths in turn until it is killed.
  private static let writer = """
    import itertools, os, sys
    for number in itertools.count():
      text = sys.argv[2] * (1 + number * 7 % 40)
      if sys.argv[3] == "rename":
        scratch = os.path.join(os.path.dirname(sys.argv[1]), ".new")
        open(scratch, "w").write(text)
        os.rename(scratch, sys.argv[1])
      else:
        open(sys.argv[1], "w").write(text)
    """

  /// The item is written in place, as by an editor, and the setting by a rename too.
  @Test(
    arguments: [
      ("keychain/generic/app/TOKEN/value", "keychain/generic/app/TOKEN/value", "place"),
      ("views/app", "keychain/generic/app/TOKEN/value", "place"),
      ("defaults/s/k", "defaults/s/k", "place"),
      ("defaults/s/k", "defaults/s/k", "rename"),
    ], [1, 3])
  func isTheLengthThatIsRead(_ files: (read: String, written: String, how: String), threads: Int) async throws
  {
    try await withWorld { world in
      let keyhole = MountedKeyhole(world, options: ["keychain=vault"])
      defer { keyhole.cleanUp() }
      try keyhole.start()
      try keyhole.check(
        """
        mkdir -p keychain/generic/app/TOKEN defaults/s; printf abc > keychain/generic/app/TOKEN/value; echo abc > defaults/s/k
        keyhole view app --format env --from keychain/generic/app
        """)
      try System.write(world.outside + "/read.py", Self.reader)
      try System.write(world.outside + "/write.py", Self.writer)
      try keyhole.check(
        """
        python3 "$OUT/write.py" \(files.written) abc \(files.how) 2> /dev/null & writer=$!
        python3 "$OUT/read.py" \(files.read) 600 \(threads); kill $writer; wait $writer 2> /dev/null; true
        """, prints: "0 True\n", within: .seconds(120))
    }
  }

  /// The status of a file that a process keeps open follows the file, once it has read it.
  @Test func aFileThatWasReadShowsTheStoredSize() async throws {
    try await withWorld { world in
      let keyhole = MountedKeyhole(world, options: ["keychain=vault"])
      defer { keyhole.cleanUp() }
      try keyhole.start()
      let script = """
        import os, subprocess
        for name in ["keychain/generic/app/TOKEN/value", "defaults/s/k"]:
          file = os.open(name, os.O_RDONLY)
          subprocess.run(["sh", "-c", "printf longer > " + name])
          # A child that has inherited it, and another process that has not.
          child = subprocess.run(["python3", "-c", "import os; print(os.fstat(%d).st_size)" % file], pass_fds=[file], capture_output=True)
          print(os.fstat(file).st_size, child.stdout.decode().strip(), len(os.pread(file, 100, 0)))
          os.pread(file, 100, 3)
          print(os.fstat(file).st_size, os.stat(name).st_size)
        """
      try keyhole.check(
        "mkdir -p keychain/generic/app/TOKEN defaults/s; printf abc > keychain/generic/app/TOKEN/value; echo abc > defaults/s/k"
      )
      try System.write(world.outside + "/script.py", script)
      try keyhole.check("python3 \"$OUT/script.py\"", prints: "3 3 3\n6 6\n4 4 4\n7 7\n")
    }
  }
}
