import EtcdHarness
import Testing

/// A store in a cluster beside a vault, each with a passphrase of its own.
@Suite(.timeLimit(.minutes(2))) struct ClusterUnlockTests {
  private static let vaultPassphrase = "fern-Lk3-badger-77-harbor-2"

  /// The vault of the machine has a passphrase, and an item.
  private static func withVault(_ body: (ClusterMachines, World) throws -> Void) async throws {
    try await withClusterMachines { machines in
      try machines.create()
      let world = machines.one
      try world.check(
        "keyhole mount -o keychain=vault; printf hidden | keyhole set keychain/generic/s/me/value; keyhole unmount"
      )
      let set = try world.sh("exec keyhole passphrase", sending: Array((vaultPassphrase + "\n").utf8))
      try #require(set.status == 0, "\(set)")
      try body(machines, world)
    }
  }

  private static func unlock(_ world: World, _ passphrase: String) throws -> Output {
    try world.sh("exec keyhole unlock", sending: Array((passphrase + "\n").utf8))
  }

  /// Each passphrase opens its part, and is no wrong one; what is still locked is named.
  @Test(arguments: [true, false]) func eachPassphraseOpensItsPart(_ vaultFirst: Bool) async throws {
    try await Self.withVault { machines, world in
      let mount = try machines.mountLocked(world, ["keychain=vault"])
      let both = [Self.vaultPassphrase, ClusterMachines.passphrase]
      let (first, second) = vaultFirst ? (both[0], both[1]) : (both[1], both[0])
      let half = try Self.unlock(world, first)
      #expect(half.status != 0 && half.error.contains("the passphrase was taken"), "\(half)")
      #expect(half.error.contains(vaultFirst ? machines.address : "its keychain"), "\(half)")
      #expect(!(try mount.status("locked").first ?? "").hasSuffix("no"))
      let rest = try Self.unlock(world, second)
      #expect(rest.status == 0, "\(rest)")
      #expect((try mount.status("locked").first ?? "").hasSuffix("no"))
      try mount.check("mkdir defaults/app; echo x > defaults/app/text; cat defaults/app/text", prints: "x\n")
      try world.check("keyhole get keychain/generic/s/me/value", prints: "hidden")
      let wrong = try Self.unlock(world, "no-such-Passphrase-1")
      #expect(wrong.status == 0, "it is unlocked already: \(wrong)")
    }
  }

  /// The passphrase of a device changes while it has the store mounted: from then on the new one alone unlocks it, here and after a new start.
  @Test func theDevicesPassphraseChangesWhileItIsMounted() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      let world = machines.one
      let new = "gorse-Pd5-heron-62-meadow-3"
      let mount = try machines.mount(world)
      try mount.check("mkdir defaults/app; echo x > defaults/app/text")
      func change(_ lines: String...) throws -> Output {
        let input = Array((lines.joined(separator: "\n") + "\n").utf8)
        return try world.sh("exec keyhole cluster passphrase", sending: input)
      }
      let wrong = try change("no-such-Passphrase-1", new)
      #expect(wrong.status != 0 && wrong.error.contains("nothing was changed"), "\(wrong)")
      let weak = try change(ClusterMachines.passphrase, "abc")
      #expect(weak.status != 0 && weak.error.contains("weak"), "\(weak)")
      let changed = try change(ClusterMachines.passphrase, new)
      #expect(changed.status == 0 && changed.error.contains("delete them"), "\(changed)")
      try mount.check("cat defaults/app/text", prints: "x\n")
      try world.check("keyhole lock")
      #expect(try Self.unlock(world, ClusterMachines.passphrase).status != 0)
      let opened = try Self.unlock(world, new)
      #expect(opened.status == 0, "\(opened)")
      try mount.check("cat defaults/app/text", prints: "x\n")
      _ = try mount.unmount()
      let again = try machines.mountLocked(world)
      #expect(try Self.unlock(world, ClusterMachines.passphrase).status != 0)
      #expect(try Self.unlock(world, new).status == 0)
      try again.check("cat defaults/app/text", prints: "x\n")
    }
  }

  /// The vault's passphrase changes while a store in a cluster is mounted, which is no concern of that.
  @Test func theVaultsPassphraseChangesBesideAStore() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      let world = machines.one
      try world.check(
        "keyhole mount -o keychain=vault; printf hidden | keyhole set keychain/generic/s/me/value; keyhole unmount"
      )
      let mount = try machines.mount(world)
      let set = try world.sh(
        "exec keyhole passphrase --recovery-code new", sending: Array((Self.vaultPassphrase + "\n").utf8))
      #expect(set.status == 0 && set.text.count > 20, "\(set)")
      try mount.check("mkdir defaults/app; echo x > defaults/app/text; cat defaults/app/text", prints: "x\n")
    }
  }
}
