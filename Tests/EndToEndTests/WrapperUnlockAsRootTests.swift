import Testing

/// A program with the wrappers opens a locked vault that no mount serves: the installed command asks.
@Suite(
  .timeLimit(.minutes(2)),
  .enabled(if: Privileges.isRoot, "needs root: installs the command for a machine of its own"))
struct WrapperUnlockAsRootTests {
  /// A pinentry that notes its commands and types what ~/word holds.
  private static let pinentry = """
    mkdir ~/bin; printf '%s\\n' '#!/bin/bash' 'echo OK' 'while read -r line; do echo "$line" >> ~/told' \
      'if [ "$line" = GETPIN ]; then echo "D $(cat ~/word)"; fi; echo OK; done' > ~/bin/pinentry
    chmod +x ~/bin/pinentry; echo horse > ~/word; : > ~/told

    """
  private static let ask = "export DISPLAY=:9 PATH=$HOME/bin:$PATH; setsid -w wrapper get app 2> /dev/null"

  @Test func theInstalledCommandAsksForThePassphrase() async throws {
    try await withMachine { machine in
      try machine.check(
        as: .anna,
        Self.pinentry
          + "wrapper secret app one; echo horse | keyhole passphrase --weak --cost 14 2> /dev/null",
        within: LockTests.patience)
      // No command is installed: keyhole in PATH is none.
      try machine.check(as: .anna, Self.ask, prints: "nil\n")
      try machine.check(
        as: .root,
        "mount -t tmpfs tmpfs /usr/local/bin; touch /usr/local/bin/keyhole; mount --bind /home/bin/keyhole /usr/local/bin/keyhole"
      )
      try machine.check(as: .anna, Self.ask, prints: "one\n", within: LockTests.patience)
      try machine.check(
        as: .anna,
        """
        grep -c '^SETDESC Program: /home/bin/wrapper%0A.*keychain/generic/app/%0A.*goes to this program' ~/told; : > ~/told
        (export KEYHOLE_ASK_UNLOCK=no; \(Self.ask)); wc -c < ~/told
        """, prints: "1\nnil\n0\n")
      // One password opens it for as long as the program runs, and for no other program.
      try machine.check(
        as: .anna,
        "export DISPLAY=:9 PATH=$HOME/bin:$PATH; setsid -w wrapper secret app two; " + Self.ask
          + "; grep -c GETPIN ~/told", prints: "two\n2\n", within: LockTests.patience)
      try machine.check(
        as: .anna, "echo cow > ~/word; : > ~/told; \(Self.ask); grep -c GETPIN ~/told", prints: "nil\n3\n",
        within: LockTests.patience)
      try Self.checkThatNoOtherCounts(machine)
    }
  }

  /// A command that its user can change, and a request that is not for a passphrase.
  private static func checkThatNoOtherCounts(_ machine: Machine) throws {
    try machine.fails(
      as: .anna, "printf 'item x\\nprogram /bin/other\\n\\n' | (keyhole authenticate; exit $?)", status: 1,
      "is started by")
    try machine.check(
      as: .root,
      "umount /usr/local/bin/keyhole; cp /bin/true /usr/local/bin/keyhole; chmod 775 /usr/local/bin/keyhole")
    try machine.check(
      as: .anna, "echo horse > ~/word; : > ~/told; \(ask); wc -c < ~/told", prints: "nil\n0\n")
  }
}
