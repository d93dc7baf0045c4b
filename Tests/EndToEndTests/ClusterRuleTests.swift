import Testing

/// Rules for programs on items of a store in a cluster, which name the machine on which they hold.
@Suite(.timeLimit(.minutes(3))) struct ClusterRuleTests {
  private static let item = "keychain/generic/service/me"
  private static let value = item + "/value"
  /// No question is agreed to.
  private static let refusing = "auth-command=/bin/false"

  private static func rules(_ world: World) throws -> [String] {
    try world.sh("keyhole rules \(item)").lines
  }

  @Test func ruleHoldsOnTheMachineThatItNames() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      let one = try machines.mount(machines.one, Self.refusing)
      try one.check("mkdir -p \(Self.item); printf secret > \(Self.value)")
      try machines.join()
      let other = try machines.mount(machines.other, Self.refusing)
      try other.shows("secret", at: Self.value)

      // Without --host: this machine.
      try one.world.check("keyhole allow /bin/cat \(Self.item)")
      let number = try machines.device(of: machines.one)
      let program = try one.world.sh("realpath /bin/cat").lines[0]
      let rule = "allow host:\(number) \(program)"
      try one.check("getfattr --only-values -n user.keyhole.programs \(Self.item)", prints: rule)
      try one.check("cat \(Self.value)", prints: "secret")
      #expect(try Self.rules(one.world) == ["\(Self.item)\t\(rule)\ton this device", "otherwise\task"])
      #expect(try holds(within: .seconds(20)) { try other.sh("cat \(Self.value)").status != 0 })
      try other.refuses("cat \(Self.value)", .denied)
      #expect(try Self.rules(other.world) == ["\(Self.item)\t\(rule)\ton another device", "otherwise\task"])
    }
  }

  @Test func hostIsAnOptionOfAllow() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      let one = try machines.mount(machines.one, Self.refusing)
      let other = "22222222-2222-4222-8222-222222222222"
      for (host, isLetIn) in [(other, false), ("all", true)] {
        try one.check("mkdir -p \(Self.item); printf secret > \(Self.value)")
        try one.world.check("keyhole allow --host \(host) /bin/cat \(Self.item)")
        if isLetIn {
          try one.check("cat \(Self.value)", prints: "secret")
        } else {
          try one.refuses("cat \(Self.value)", .denied)
        }
        try one.check("rm -r \(Self.item)")
      }
      // As another program has written it, or an import.
      try one.check("mkdir -p \(Self.item); printf secret > \(Self.value)")
      try one.world.check("keyhole attr \(Self.item) keyhole.programs 'allow /usr/bin/cat'")
      try one.refuses("cat \(Self.value)", .denied)
      #expect(
        try Self.rules(one.world).first == "\(Self.item)\tallow /usr/bin/cat\tasks: it names no device")
      let wrong = try one.world.sh("keyhole allow --host here /bin/cat \(Self.item)")
      #expect(wrong.status == 2 && wrong.error.contains("--host takes a whole number"), "\(wrong)")
    }
  }

  /// A person agrees by the passphrase of this device, and by that of no vault beside it.
  @Test(.enabled(if: System.exists("/usr/bin/pinentry-curses"), "needs pinentry-curses"))
  func theDevicesPassphraseMeetsFlags() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      let world = machines.one
      try world.check(
        "printf x | keyhole set keychain/generic/local/x; echo horse | keyhole passphrase --weak --cost 14 2> /dev/null"
      )
      let one = try machines.mount(world, "auth-reuse=0,auth-requests=yes")
      try one.check("printf secret | keyhole set --access userPresence \(Self.item)")
      let reader = try one.launch(["/usr/bin/setsid", "-w", "/usr/bin/cat", Self.value])
      var number = ""
      #expect(
        try holds {
          number = String(try world.sh("keyhole requests | cut -f 1").text.dropLast())
          return !number.isEmpty
        })
      let terminal = try Terminal(
        ["/bin/sh", "-c", "keyhole approve \(number)"], environment: world.environment,
        directory: world.outside,
        errors: world.outside + "/errors")
      try terminal.wait(for: "this device")
      try terminal.wait(for: "Passphrase:")
      try terminal.type("horse\r")
      try terminal.wait(for: "Wrong passphrase; 2 tries are left")
      try terminal.type(ClusterMachines.passphrase + "\r")
      let approval = try terminal.finish()
      #expect(approval.status == 0, "\(approval)")
      #expect(try reader.finish().text == "secret")
      // The class that needs a passphrase is bound to a device.
      try one.check("printf x | keyhole set keychain/generic/service/bound")
      try one.refuses(
        "setfattr -n user.keyhole.accessible -v whenPasscodeSetThisDeviceOnly keychain/generic/service/bound",
        .notSupported)
    }
  }

  /// A keychain of one machine has no hosts.
  @Test func vaultHasNoHosts() async throws {
    try await withWorld { world in
      try world.check("printf secret | keyhole set \(Self.item)")
      let refused = try world.sh("keyhole allow --host all /bin/cat \(Self.item)")
      #expect(
        refused.status == 1 && refused.error.contains("rules there name no hosts"), "\(refused)")
      try world.check("keyhole allow /bin/cat \(Self.item) 2> /dev/null")
      let program = try world.sh("realpath /bin/cat").lines[0]
      #expect(try Self.rules(world) == ["\(Self.item)\tallow \(program)", "otherwise\task"])
    }
  }
}
