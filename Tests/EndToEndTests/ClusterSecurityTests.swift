import EtcdHarness
import Glibc
import Testing

/// TLS, certificates, users and passwords of the servers, through the command and the mounts; and the messages that an operator gets
/// where one of them is wrong.
@Suite(.timeLimit(.minutes(2))) struct ClusterSecurityTests {
  /// A server with TLS; `NAME.pem` and `NAME.key` of `client`, `root` and `fleet` are in its folder.
  private static func withSecureMachines(
    certificate: String? = "client", user: String? = nil, _ body: (ClusterMachines) throws -> Void
  ) async throws {
    try await withClusterMachines {
      $0.isSecure = true
    } options: { nodes in
      options(nodes, certificate)
    } body: {
      try body($0)
    }
  }

  private static func options(_ nodes: EtcdNodes, _ certificate: String?) -> [String] {
    let own = certificate.map {
      ["etcd-cert=\(nodes.folder)/\($0).pem", "etcd-key=\(nodes.folder)/\($0).key"]
    }
    return ["etcd-ca=\(nodes.folder)/ca.pem"] + (own ?? [])
  }

  /// The same without `etcd-cert=` and `etcd-key=`.
  private static func certificates(_ machines: ClusterMachines, _ name: String?) -> String {
    options(machines.nodes, name).map { "--" + $0 }.joined(separator: " ")
  }

  @Test func certificatesOfBothSides() async throws {
    try await Self.withSecureMachines { machines in
      try machines.create()
      let one = try machines.mount(machines.one)
      try machines.join()
      let other = try machines.mount(machines.other)
      try one.check("mkdir -p keychain/generic/s/a; printf hunter2 > keychain/generic/s/a/value")
      try other.shows("hunter2", at: "keychain/generic/s/a/value")
      #expect(try one.status("cluster").allSatisfy { !$0.contains("not encrypted") })
      // The address was noted, with the files: no option is needed again.
      try machines.one.check("keyhole cluster requests")
      let status = try machines.succeeds("status", on: machines.one)
      #expect(status.lines.contains { $0.hasPrefix("server   ") && $0.contains("etcd 3.") }, "\(status)")
    }
  }

  /// Each is refused with words that name the file, or what to look at.
  @Test func wrongCertificatesAreNamed() async throws {
    try await Self.withSecureMachines { machines in
      try machines.create()
      let foreign = try System.makeAuthority(in: machines.one.outside + "/foreign")
      let expired = machines.one.outside + "/expired"
      try machines.one.check(
        """
        exec > "$OUT/said" 2>&1; cd '\(machines.nodes.folder)'
        openssl req -new -key client.key -subj /CN=client -out '\(expired).csr'
        openssl x509 -req -in '\(expired).csr' -CA ca.pem -CAkey ca.key -CAcreateserial -days 0 -out '\(expired).pem'
        """)
      let folder = machines.nodes.folder
      let ca = "--etcd-ca \(folder)/ca.pem"
      let cases = [
        // Another authority than that of the servers.
        (
          "--etcd-ca \(foreign)/ca.pem --etcd-cert \(folder)/client.pem --etcd-key \(folder)/client.key",
          "certificate"
        ),
        // No certificate of this client, and one of another authority.
        (ca, "certificate"),
        ("\(ca) --etcd-cert \(foreign)/client.pem --etcd-key \(foreign)/client.key", "certificate"),
        ("\(ca) --etcd-cert \(expired).pem --etcd-key \(folder)/client.key", "certificate"),
        // A file that is not there, a key that belongs to another certificate, half of a pair.
        ("--etcd-ca \(folder)/none.pem", "none.pem"),
        ("\(ca) --etcd-cert \(folder)/none.pem --etcd-key \(folder)/client.key", "none.pem"),
        ("\(ca) --etcd-cert \(folder)/client.pem --etcd-key \(folder)/root.key", "root.key"),
        ("\(ca) --etcd-cert \(folder)/client.pem", "belong together"),
        // Without TLS.
        ("", "TLS"),
      ]
      for (flags, word) in cases {
        let output = try machines.one.sh("exec keyhole cluster members --store \(machines.address) \(flags)")
        #expect(output.status == 1 && output.error.contains(word), "\(flags): \(output)")
      }
    }
  }

  /// The password comes by a descriptor or a credential, and never by an argument.
  @Test func usersAndPasswords() async throws {
    try await withClusterMachines { _ in
    } options: { _ in
      []
    } body: { machines in
      try machines.enableUsers()
      let world = machines.one
      try world.check(
        """
        mkdir -m 700 right wrong; printf fleetpw > right/keyhole.etcd-password; printf wrongpw > wrong/keyhole.etcd-password
        printf '\(ClusterMachines.passphrase)' > right/keyhole.cluster-passphrase; chmod 600 */*
        """)
      func keyhole(_ words: String, _ before: String = "") throws -> Output {
        try world.sh(
          "\(before) exec keyhole \(words)", sending: Array((ClusterMachines.passphrase + "\n").utf8))
      }
      let store = "--store \(machines.address) --etcd-user fleet"
      let none = try keyhole("cluster init \(store)")
      #expect(none.status == 1 && none.error.contains("keyhole.etcd-password"), "\(none)")
      let wrong = try keyhole("cluster init \(store)", "CREDENTIALS_DIRECTORY=$OUT/wrong")
      #expect(wrong.status != 0 && wrong.error.contains("the cluster refuses the user"), "\(wrong)")
      let anonymous = try keyhole("cluster init --store \(machines.address)")
      #expect(anonymous.status != 0 && anonymous.error.contains("user"), "\(anonymous)")
      let made = try keyhole(
        "cluster init \(store) --etcd-password-descriptor 5", "5< right/keyhole.etcd-password")
      #expect(made.status == 0, "\(made)")
      let folder = world.outside
      let right = try machines.mountLocked(
        world, ["etcd-user=fleet"], launcher: ["/usr/bin/env", "CREDENTIALS_DIRECTORY=\(folder)/right"])
      // The credential of the passphrase has unlocked it.
      #expect(try holds { try right.status("cluster").first?.contains(" connected") == true })
      try right.check(
        "mkdir defaults/app; echo 1 > defaults/app/volume; cat defaults/app/volume", prints: "1\n")
      // The password is changed while it is mounted: what is seen is that, and what to look at.
      try machines.nodes.etcdctl(
        "--user=root:rootpw user passwd fleet --interactive=false", input: "otherpw\n")
      let isTold = try holds {
        try right.world.sh("keyhole doctor").text.contains("it refuses this client")
      }
      #expect(isTold)
      let doctor = try world.sh("keyhole doctor")
      #expect(doctor.text.contains("`etcd-user=` and the password"), "\(doctor)")
      right.cleanUp()
      let refused = MountedKeyhole(
        world, options: ["store=\(machines.address)", "etcd-user=fleet"],
        launcher: ["/usr/bin/env", "CREDENTIALS_DIRECTORY=\(folder)/right"])
      defer { refused.cleanUp() }
      try refused.start()
      let isRefused = try holds { try refused.status("cluster").first?.contains(" access-denied") == true }
      #expect(isRefused)
    }
  }

  /// The background process of a mount gets the password by the descriptor too.
  @Test func passwordByDescriptorReachesTheMountInTheBackground() async throws {
    try await withClusterMachines { machines in
      for words in [
        "user add root:rootpw", "user grant-role root root", "auth enable",
      ] { try machines.nodes.etcdctl(words) }
      let world = machines.one
      try world.check("printf rootpw > password")
      let store = "--store \(machines.address) --etcd-user root --etcd-password-descriptor 5"
      let passphrase = Array((ClusterMachines.passphrase + "\n").utf8)
      let made = try world.sh("exec keyhole cluster init \(store) 5< password", sending: passphrase)
      #expect(made.status == 0, "\(made)")
      let mounted = try world.sh(
        "keyhole mount -o store=\(machines.address),etcd-user=root,etcd-password-descriptor=5 \"$MOUNT\" 5< password"
          + " > \"$OUT/said\" 2>&1 < /dev/null; cat \"$OUT/said\"")
      defer { _ = try? world.sh("keyhole unmount \"$MOUNT\"") }
      #expect(mounted.status == 0, "\(mounted)")
      let unlocked = try world.sh("exec keyhole unlock", sending: passphrase)
      #expect(unlocked.status == 0, "\(unlocked)")
      try world.check("keyhole set defaults/app/volume 1; cat \"$MOUNT/defaults/app/volume\"", prints: "1\n")
    }
  }
}

extension System {
  /// Certificates of an authority that the servers do not know. - Returns: the folder.
  fileprivate static func makeAuthority(in folder: String) throws -> String {
    try System.mkdir(folder)
    try TestAuthority.make(in: folder, clients: ["client"])
    return folder
  }
}
