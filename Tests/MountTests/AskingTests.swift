import Glibc
import Testing

/// Section 8: a person is asked by a real pinentry on a terminal, and by a real PAM.
@Suite(
  .timeLimit(.minutes(2)), .enabled(if: System.exists("/usr/bin/pinentry-curses"), "needs pinentry-curses"))
struct AskingTests {
  private static let item = "keychain/generic/s/p"

  /// A mount whose vault has the passphrase `horse`, and an item with flags.
  private static func withItem(
    _ flags: String, passphrase: Bool = true, environment: [String] = [],
    body: (MountedKeyhole) throws -> Void
  ) async throws {
    try await withKeyhole("auth-reuse=0", environment: environment) { keyhole in
      try keyhole.check(
        "mkdir -p \(item); [ -z '\(flags)' ] || setfattr -n user.keyhole.access -v '\(flags)' \(item); echo secret > \(item)/value"
      )
      if passphrase { try keyhole.check("echo horse | keyhole passphrase") }
      try body(keyhole)
    }
  }

  /// Reads the secret in a terminal, where a person is asked.
  private static func read(_ keyhole: MountedKeyhole, _ command: String = "cat \(item)/value") throws
    -> Terminal
  {
    let world = keyhole.world
    return try Terminal(
      ["/bin/sh", "-c", "\(command) > $OUT/read"], environment: world.environment, directory: keyhole.mount,
      errors: world.outside + "/errors")
  }

  private static func finish(_ terminal: Terminal, _ keyhole: MountedKeyhole) throws -> (
    Int32, String, String
  ) {
    let output = try terminal.finish()
    return (output.status, try System.text(keyhole.world.outside + "/read"), output.error)
  }

  @Test func passphraseOnTheTerminalOfWhoAsks() async throws {
    try await Self.withItem("devicePasscode") { keyhole in
      let terminal = try Self.read(keyhole)
      try terminal.wait(for: Self.item)
      try terminal.wait(for: "/usr/bin/cat")
      try terminal.wait(for: "Passphrase:")
      try terminal.type("wrong\r")
      try terminal.wait(for: "wrong")
      try terminal.wait(for: "Passphrase:")
      try terminal.type("horse\r")
      #expect(try Self.finish(terminal, keyhole) == (0, "secret", ""))
    }
  }

  @Test func wrongThreeTimesIsEKEYREJECTED() async throws {
    try await Self.withItem("userPresence") { keyhole in
      let terminal = try Self.read(keyhole)
      for _ in 0..<3 {
        try terminal.wait(for: "Passphrase:")
        try terminal.type("wrong\r")
      }
      let (status, text, error) = try Self.finish(terminal, keyhole)
      #expect(status == 1 && text.isEmpty && error.contains("Key was rejected"))
    }
  }

  @Test func cancelledIsEACCES() async throws {
    try await Self.withItem("devicePasscode") { keyhole in
      let terminal = try Self.read(keyhole)
      try terminal.wait(for: "Passphrase:")
      // To the second of two buttons.
      try terminal.type("\t\t\r")
      let (status, text, error) = try Self.finish(terminal, keyhole)
      #expect(status == 1 && text.isEmpty && error.contains("Permission denied"))
    }
  }

  @Test func nobodyCanBeAskedWithoutATerminal() async throws {
    try await Self.withItem("devicePasscode") { keyhole in
      try keyhole.refuses("setsid -w cat \(Self.item)/value", .denied)
    }
  }

  @Test func consentIsAskedForByAMereRule() async throws {
    try await Self.withItem("") { keyhole in
      try keyhole.check("setfattr -n user.keyhole.programs -v 'ask *' \(Self.item)")
      let allowed = try Self.read(keyhole)
      try allowed.wait(for: "Allow")
      try allowed.type("\r")
      #expect(try Self.finish(allowed, keyhole) == (0, "secret", ""))
      let refused = try Self.read(keyhole)
      try refused.wait(for: "Refuse")
      try refused.type("\t\r")
      #expect(try Self.finish(refused, keyhole).0 == 1)
    }
  }

  @Test func passwordOfAnItemIsChosenTwiceAndAskedFor() async throws {
    try await Self.withItem("", passphrase: false) { keyhole in
      let chosen = try Self.read(
        keyhole, "setfattr -n user.keyhole.access -v applicationPassword \(Self.item)")
      try chosen.wait(for: "Choose a password")
      try chosen.wait(for: "assword:")
      try chosen.type("staple\r")
      try chosen.wait(for: "Once more:")
      try chosen.type("stable\r")
      try chosen.wait(for: "not the same")
      try chosen.wait(for: "assword:")
      try chosen.type("staple\r")
      try chosen.wait(for: "Once more:")
      try chosen.type("staple\r")
      #expect(try Self.finish(chosen, keyhole) == (0, "", ""))
      let asked = try Self.read(keyhole)
      try asked.wait(for: "assword:")
      try asked.type("wrong\r")
      try asked.wait(for: "That was wrong")
      try asked.wait(for: "assword:")
      try asked.type("staple\r")
      #expect(try Self.finish(asked, keyhole) == (0, "secret", ""))
    }
  }

  /// By a stand-in, which notes what it is told.
  @Test func dialogIsToldOfTheTerminalOfWhoAsks() async throws {
    try await withWorld { outer in
      try outer.check(
        "mkdir \(outer.root)/bin; cat > \(outer.root)/bin/pinentry-curses; chmod +x \(outer.root)/bin/*",
        sending: Array(
          "#!/bin/sh\necho OK\nwhile read -r line; do echo \"$line\" >> \(outer.root)/told; echo OK; done\n"
            .utf8))
      let path = "PATH=\(outer.root)/bin:\(Products.folder):/usr/local/bin:/usr/bin:/bin"
      try await Self.withItem("", passphrase: false, environment: [path, "TERM=dumb"]) { keyhole in
        try keyhole.check("setfattr -n user.keyhole.programs -v 'ask *' \(Self.item)")
        let reader = try Self.read(keyhole, "TERM=vt220-odd cat \(Self.item)/value")
        #expect(try Self.finish(reader, keyhole) == (0, "secret", ""))
        let told = try System.text(outer.root + "/told")
        #expect(told.contains("OPTION ttytype=vt220-odd\n") && told.contains("OPTION ttyname=/dev/pts/"))
      }
    }
  }

  /// A PAM of the test's own, which knows the password `staple`, and a reader that recognises everybody or nobody.
  private static func withPAM(
    _ flags: String, reader: Bool, body: (MountedKeyhole) throws -> Void
  ) async throws {
    try await withWorld { outer in
      let folder = outer.root + "/pam"
      let name = unsafe String(cString: getpwuid(getuid()).pointee.pw_name)
      try outer.check(
        """
        mkdir \(folder); cd \(folder)
        echo '\(name):staple:keyhole' > users
        matrix=/usr/lib/$(uname -m)-linux-gnu/pam_wrapper/pam_matrix.so
        printf 'auth required %s passdb=%s\\naccount required %s passdb=%s\\n' $matrix $PWD/users $matrix $PWD/users > keyhole
        printf 'auth required pam_\(reader ? "permit" : "deny").so\\naccount required pam_permit.so\\n' > keyhole-biometry
        printf 'auth required pam_deny.so\\naccount required pam_deny.so\\n' > other
        """)
      let environment = [
        "LD_PRELOAD=libpam_wrapper.so", "PAM_WRAPPER=1", "PAM_WRAPPER_SERVICE_DIR=\(folder)",
      ]
      try await withItem(flags, passphrase: false, environment: environment, body: body)
    }
  }

  private static let hasWrapper = !System.files(below: "/usr/lib").filter {
    $0.hasSuffix("pam_wrapper/pam_matrix.so")
  }.isEmpty

  @Test(.enabled(if: hasWrapper, "needs libpam-wrapper"))
  func passwordOfPAMWhereTheVaultHasNoPassphrase() async throws {
    try await Self.withPAM("devicePasscode", reader: false) { keyhole in
      let terminal = try Self.read(keyhole)
      try terminal.wait(for: "assword:")
      try terminal.type("wrong\r")
      try terminal.wait(for: "assword:")
      try terminal.type("staple\r")
      #expect(try Self.finish(terminal, keyhole) == (0, "secret", ""))
    }
  }

  @Test(.enabled(if: hasWrapper, "needs libpam-wrapper"), arguments: [true, false])
  func readerOfPAM(recognises: Bool) async throws {
    try await Self.withPAM("biometryAny", reader: recognises) { keyhole in
      let terminal = try Self.read(keyhole)
      try terminal.wait(for: "Then use the reader")
      try terminal.type("\r")
      let (status, text, _) = try Self.finish(terminal, keyhole)
      #expect(recognises ? status == 0 && text == "secret" : status == 1 && text.isEmpty)
    }
  }

  @Test(.enabled(if: hasWrapper, "needs libpam-wrapper"))
  func bothAreAskedWhereBothAreDemanded() async throws {
    try await Self.withPAM("biometryAny|and|devicePasscode", reader: true) { keyhole in
      let terminal = try Self.read(keyhole)
      try terminal.wait(for: "Then use the reader")
      try terminal.type("\r")
      try terminal.wait(for: "assword:")
      try terminal.type("staple\r")
      #expect(try Self.finish(terminal, keyhole) == (0, "secret", ""))
    }
  }

  @Test(.enabled(if: hasWrapper, "needs libpam-wrapper"))
  func whoIsNotRecognisedMayTypeWhereOneIsEnough() async throws {
    try await Self.withPAM("userPresence", reader: false) { keyhole in
      let terminal = try Self.read(keyhole)
      try terminal.wait(for: "Then use the reader")
      try terminal.type("\r")
      try terminal.wait(for: "assword:")
      try terminal.type("staple\r")
      #expect(try Self.finish(terminal, keyhole) == (0, "secret", ""))
    }
  }
}
