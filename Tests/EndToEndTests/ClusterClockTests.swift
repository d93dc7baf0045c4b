import EtcdHarness
import Testing

/// A machine of a store in a cluster whose clock jumps while it is mounted: the process of the mount reads another one.
///
/// The servers' programs read the clock without the C library, so theirs can't be set apart from the machine's; what they count by is the
/// monotonic clock.
@Suite(.timeLimit(.minutes(3))) struct ClusterClockTests {
  private static let secret = "keychain/generic/service/me/value"

  private static func modified(_ path: String, _ keyhole: MountedKeyhole) throws -> Int64 {
    try #require(Int64(keyhole.sh("stat -c %Y \(path)").lines.first ?? ""))
  }

  /// Ten years ahead, and fifty back.
  @Test(FakeClock.isThere, arguments: [315_360_000, -1_577_000_000] as [Int64])
  func machineWhoseClockJumpsGoesOn(jump: Int64) async throws {
    try await withClusterMachines {
      $0.count = 3
    } body: { machines in
      try machines.create()
      let clock = try FakeClock(machines.one)
      let one = try machines.mount(machines.one, launcher: ["/usr/bin/env"] + clock.variables)
      try one.check("mkdir defaults/app; echo 0 > defaults/app/volume")
      try one.check("mkdir -p keychain/generic/service/me; printf zero > \(Self.secret)")
      try machines.join()
      let other = try machines.mount(machines.other)
      try other.shows("0\n", at: "defaults/app/volume")
      let before = try Self.modified("defaults/app/volume", other)

      for (number, seconds) in [jump, 0].enumerated() {
        try clock.set(seconds)
        let (value, answer) = ("\(number + 1)1", "\(number + 1)2")
        try one.check("echo \(value) > defaults/app/volume; printf \(value) > \(Self.secret)")
        try other.shows(value + "\n", at: "defaults/app/volume")
        try other.shows(value, at: Self.secret)
        // The clock did jump: the time of a setting is that of the machine that wrote it.
        if seconds > 0 {
          #expect(try Self.modified("defaults/app/volume", other) > before + seconds - 86_400)
        }
        try other.check("echo \(answer) > defaults/app/volume; printf \(answer) > \(Self.secret)")
        try one.shows(answer + "\n", at: "defaults/app/volume")
        try one.shows(answer, at: Self.secret)
        #expect(try System.attribute(one / "defaults/app/volume", "user.keyhole.stale") == "false")
        let status = try one.status("cluster")
        #expect(status.first?.contains("connected") == true, "\(status)")
      }
    }
  }
}
