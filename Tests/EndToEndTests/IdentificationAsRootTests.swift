import Glibc
import Testing

/// The system calls of the file system's process while a secret is read.
@Suite(
  .timeLimit(.minutes(1)), .enabled(if: Privileges.isRoot, "needs root: traces the file system's process"))
struct IdentificationAsRootTests {
  private static let reads = 20

  /// To identify a program takes several calls, as those of an executable's path and of a start time.
  @Test func callerIsIdentifiedOnlyForAnItemThatNeedsIt() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        for item in free ruled; do mkdir -p keychain/generic/$item/x; printf secret > keychain/generic/$item/x/value; done
        setfattr -n user.keyhole.programs -v 'allow *' keychain/generic/ruled/x
        """)
      let free = try calls(of: keyhole, reading: "keychain/generic/free/x/value")
      let ruled = try calls(of: keyhole, reading: "keychain/generic/ruled/x/value")
      #expect(free.count { $0.contains("/proc/") } == 0, "\(free)")
      #expect(ruled.count { $0.contains("/proc/") } >= 1, "\(ruled)")
      // A request and its reply for each of open, read and close, and a look at the vault.
      #expect(free.count { !$0.contains("<... ") } <= Self.reads * 10, "\(free)")
    }
  }

  /// One line for each call, and a second one where another thread's came between.
  private func calls(of keyhole: MountedKeyhole, reading path: String) throws -> [String] {
    let trace = keyhole.world.outside + "/trace"
    let tracer = try Program(
      ["/bin/sh", "-c", "exec strace -f -o '\(trace)' -p \(try keyhole.process) 2>&1"],
      environment: keyhole.world.environment, directory: keyhole.world.outside)
    defer { tracer.kill() }
    while let line = try tracer.line(), !line.contains("attached") {}
    for _ in 0..<Self.reads { _ = try? System.read(keyhole / path) }
    tracer.signal(SIGTERM)
    try tracer.waitForEnd(until: Deadline(in: .seconds(20)))
    return try System.text(trace).split(separator: "\n").map(String.init)
  }
}
