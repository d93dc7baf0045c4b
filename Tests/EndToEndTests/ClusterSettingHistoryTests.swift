import EtcdHarness
import Testing

/// The values that settings of a store in a cluster had: in the mount, and by the commands, which ask its process.
@Suite(.timeLimit(.minutes(2))) struct ClusterSettingHistoryTests {
  @Test(arguments: ["", "layers=fleet/all,host/one"]) func historyAndUndo(layers: String) async throws {
    try await withClusterMachines { machines in
      try machines.create()
      let one = layers.isEmpty ? try machines.mount(machines.one) : try machines.mount(machines.one, layers)
      // Of changes within a second the first is kept: another process changes it.
      try one.check("mkdir defaults/app; echo 1 > defaults/app/volume")
      try one.remount()
      try machines.unlock(one)
      try one.check("echo 2 > defaults/app/volume; ls .keyhole/history/defaults/app", prints: "volume\n")
      try one.check("cat .keyhole/history/defaults/app/volume/*", prints: "1\n")
      let listed = try one.world.sh("keyhole history defaults/app/volume")
      #expect(listed.lines.count == 1 && listed.lines[0].hasSuffix("\tvalue"), "\(listed)")
      try one.world.check(
        "keyhole undo defaults/app/volume > \"$OUT/undone\"; keyhole get defaults/app/volume", prints: "1\n")
      try one.world.check(
        "keyhole rm --yes defaults/app/volume; keyhole history defaults/app", prints: "defaults/app/volume\n")
      try one.world.check(
        "keyhole undo defaults/app/volume > \"$OUT/undone\"; keyhole get defaults/app/volume", prints: "1\n")
      try one.world.check(
        "keyhole rm --yes --purge defaults/app/volume; keyhole history defaults", prints: "")
      try one.check("ls .keyhole/history/defaults", prints: "")
      // A removed suite as well.
      try one.world.check(
        "keyhole set defaults/gone/k 7; keyhole rm -r --yes defaults/gone; ! keyhole ls defaults/gone 2>/dev/null"
      )
      try one.check("ls .keyhole/history/defaults", prints: "gone\n")
      try one.world.check(
        "keyhole undo defaults/gone/k > \"$OUT/undone\"; keyhole get defaults/gone/k", prints: "7\n")
      try one.world.check("keyhole rm -r --yes --purge defaults/gone; keyhole history defaults", prints: "")
    }
  }

  @Test func noneIsKeptWhereTheOptionSaysSo() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      let one = try machines.mount(machines.one, "history=0")
      try one.check("mkdir defaults/app; echo 1 > defaults/app/volume; echo 2 > defaults/app/volume")
      try one.check("rm defaults/app/volume; ls .keyhole/history/defaults", prints: "")
    }
  }
}
