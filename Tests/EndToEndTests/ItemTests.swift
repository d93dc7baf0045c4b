import Glibc
import Testing

/// Section 1: items of the keychain, staged ones, and the folders that they are in.
@Suite(.timeLimit(.minutes(1))) struct ItemTests {
  @Test func stagedItemIsAnEmptyListedDirectoryOfThisMountOnly() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir -p keychain/generic/s/p; ls keychain/generic keychain/generic/s; ls -A keychain/generic/s/p",
        prints: "keychain/generic:\ns\n\nkeychain/generic/s:\np\n")
      // Another process, over the same keychain, does not see it.
      let listed = try keyhole.world.sh("keyhole ls keychain/generic/s")
      #expect(!listed.text.contains("p"))
      try keyhole.remount()
      try keyhole.check("ls keychain/generic")
    }
  }

  /// Attributes, rules and class that were set on the folder in the mount hold for the item that the command stores.
  @Test(arguments: ["echo hunter2 | keyhole set", "keyhole generate -q"])
  func secretOfACommandGetsTheAttributesThatWaitInTheMount(command: String) async throws {
    try await withKeyhole("auth-command=/bin/false") { keyhole in
      try keyhole.check(
        """
        cd keychain/generic; mkdir -p s/p; echo x | keyhole set keychain/generic/s/other
        setfattr -n user.comment -v mine s/p; setfattr -n user.keyhole.programs -v $'deny /usr/bin/head\nallow *' s/p
        setfattr -n user.keyhole.accessible -v afterFirstUnlock s/p; echo 'otpauth://totp/a?secret=GEZDGNBVGY3TQOJQ' > s/p/otpauth
        \(command) keychain/generic/s/p
        for name in comment keyhole.accessible; do keyhole attr keychain/generic/s/p $name; done
        head -c 1 s/p/value 2> /dev/null || echo refused; keyhole ls keychain/generic/s/p
        """, prints: "mine\nafterFirstUnlock\nrefused\notpauth\nvalue\n")
      // An option that the mount does not know of would be lost, or the others.
      let option = try keyhole.sh(
        "mkdir keychain/generic/s/q; echo x | keyhole set --access userPresence keychain/generic/s/q")
      #expect(option.status == 1 && option.error.contains("setfattr -n user.keyhole.access"), "\(option)")
      try keyhole.check(
        "ls keychain/generic/s/q; keyhole ls keychain/generic/s; rmdir keychain/generic/s/q",
        prints: "other\np\n")
    }
  }

  @Test func removedSecretIsGoneAtOnce() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        cd keychain/generic; mkdir -p made s/p t/q u/r; for i in s/p t/q u/r; do echo x > $i/value; done
        rm s/p/value; ls -A s s/p; rm -r t/q; ls . t; rmdir t; rm -r u; ls
        """, prints: "s:\np\n\ns/p:\n.:\nmade\ns\nt\nu\n\nt:\nmade\ns\n")
      try keyhole.crash()
      try keyhole.check("ls keychain/generic")
    }
  }

  @Test func itemsSurviveARestartAndAKill() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "cd keychain/generic; for i in {1..30}; do mkdir -p s$((i % 3))/p$i; echo secret$i > s$((i % 3))/p$i/value; done"
      )
      try keyhole.crash()
      let script =
        "cd keychain/generic; for i in {1..30}; do [ \"$(cat s$((i % 3))/p$i/value)\" = secret$i ] || echo wrong $i; done; ls"
      try keyhole.check(script, prints: "s0\ns1\ns2\n")
      try keyhole.remount()
      try keyhole.check(script, prints: "s0\ns1\ns2\n")
    }
  }
}
