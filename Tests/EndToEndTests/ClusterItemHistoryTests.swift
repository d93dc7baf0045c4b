import EtcdHarness
import Testing

/// The earlier states of items of a store in a cluster: in the mounts of two machines, and by the commands, which ask a mount's process.
@Suite(.timeLimit(.minutes(3))) struct ClusterItemHistoryTests {
  private static let path = "keychain/generic/service/me"

  @Test func historyUndoAndPurge() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      try machines.join()
      let one = try machines.mount(machines.one)
      let other = try machines.mount(machines.other)
      let path = Self.path
      try one.world.check("printf first | keyhole set \(path)", prints: "")
      try one.world.check("printf second | keyhole set \(path)", prints: "")
      let listed = try one.world.sh("keyhole history \(path)")
      #expect(listed.lines.count == 1 && listed.lines[0].hasSuffix("\tvalue"), "\(listed)")
      try one.check("cat .keyhole/history/\(path)/*", prints: "first")
      #expect(try one.world.sh("echo x > \(one / ".keyhole/history/\(path)")/1").status != 0)
      // Another machine has the same versions.
      try other.shows("second", at: "\(path)/value")
      try other.check("cat .keyhole/history/\(path)/*", prints: "first")
      let same = try other.world.sh("keyhole history \(path)")
      #expect(same.lines == listed.lines, "\(same)")
      try other.world.check("keyhole undo \(path) > \"$OUT/undone\"; keyhole get \(path)", prints: "first")
      try one.shows("first", at: "\(path)/value")
      // A removed item comes back, and a purged one does not.
      try one.world.check("keyhole rm --yes \(path); keyhole history", prints: "\(path)\n")
      try one.world.check("keyhole undo \(path) > \"$OUT/undone\"; keyhole get \(path)", prints: "first")
      try one.world.check("keyhole history --purge \(path) > \"$OUT/purged\"; keyhole history", prints: "")
      try one.world.check(
        "printf third | keyhole set \(path); keyhole rm --yes --purge \(path); keyhole history", prints: "")
      try one.check("find .keyhole/history -type f", prints: "")
      #expect(try one.world.sh("keyhole undo \(path)").status == 3)
    }
  }

  @Test func anItemsHistoryIsSwitchedOff() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      let one = try machines.mount(machines.one)
      let path = Self.path
      try one.world.check(
        "printf first | keyhole set \(path); printf second | keyhole set \(path)", prints: "")
      #expect(try one.world.sh("keyhole history \(path)").lines.count == 1)
      try one.world.check("keyhole attr \(path) keyhole.history 0; keyhole history \(path)", prints: "")
      try one.world.check("printf third | keyhole set \(path); keyhole history \(path)", prints: "")
      try one.world.check("keyhole rm --yes \(path); keyhole history", prints: "")
    }
  }
}
