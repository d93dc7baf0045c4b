import Glibc
import KeyringHarness
import Testing

/// Section 8: the session's lock screen and suspend lock, where logind tells.
@Suite(.timeLimit(.minutes(3))) struct SessionLockTests {
  private static let value = "keychain/generic/s/p/value"

  /// A logind that sends the signals that it reads from standard input: a member, and the session or the truth value.
  private static let logind = """
    import os, sys, dbus, dbus.service, dbus.mainloop.glib
    from gi.repository import GLib
    LOGIN, PROPERTIES = "org.freedesktop.login1", "org.freedesktop.DBus.Properties"
    dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
    bus = dbus.SystemBus()
    name = dbus.service.BusName(LOGIN, bus)

    class Object(dbus.service.Object):
        hint = False
        def __init__(self, path, user):
            super().__init__(bus, path)
            self.user = user
        @dbus.service.method(PROPERTIES, in_signature="ss", out_signature="v")
        def Get(self, interface, name):
            if name == "User":
                return dbus.Struct((dbus.UInt32(self.user), dbus.ObjectPath("/user")), signature="uo", variant_level=1)
            return dbus.Boolean(self.hint, variant_level=1)
        @dbus.service.method(LOGIN + ".Manager", in_signature="ssss", out_signature="h")
        def Inhibit(self, what, who, why, mode):
            if len(sys.argv) > 2:
                raise dbus.DBusException("not today", name="org.freedesktop.DBus.Error.AccessDenied")
            assert (what, mode) == ("sleep", "delay"), (what, mode)
            ours, theirs = os.pipe()
            GLib.io_add_watch(ours, GLib.IO_HUP, lambda *_: print("released", flush=True) or os.close(ours))
            print("held", flush=True)
            answer = dbus.types.UnixFd(theirs)
            os.close(theirs)
            return answer
        @dbus.service.signal(LOGIN + ".Manager", signature="b")
        def PrepareForSleep(self, begins): pass
        @dbus.service.signal(LOGIN + ".Session", signature="")
        def Lock(self): pass
        @dbus.service.signal(LOGIN + ".Session", signature="")
        def Unlock(self): pass
        @dbus.service.signal(PROPERTIES, signature="sa{sv}as")
        def PropertiesChanged(self, interface, changed, gone): pass

    manager = Object("/org/freedesktop/login1", 0)
    sessions = {"own": Object("/org/freedesktop/login1/session/_31", int(sys.argv[1])),
                "other": Object("/org/freedesktop/login1/session/_32", int(sys.argv[1]) + 1)}

    def told(channel, condition):
        words = sys.stdin.readline().split()
        if not words:
            loop.quit()
        elif words[0] == "sleep":
            manager.PrepareForSleep(words[1] == "true")
        elif words[0] == "hint":
            session = sessions[words[1]]
            session.hint = words[2] == "true"
            session.PropertiesChanged(LOGIN + ".Session", {"LockedHint": session.hint}, [])
        else:
            getattr(sessions[words[1]], words[0])()
        return True

    loop = GLib.MainLoop()
    GLib.io_add_watch(sys.stdin, GLib.IO_IN | GLib.IO_HUP, told)
    print("ready", flush=True)
    loop.run()
    """

  /// A mount that hears a logind, with one item of class `whenUnlocked`.
  private static func withLogind(
    _ arguments: String..., body: (MountedKeyhole, Program) throws -> Void
  ) async throws {
    let bus = try PrivateBus()
    try await withLogind(on: bus, arguments, "keychain=vault") { keyhole, logind in
      try keyhole.check("mkdir -p keychain/generic/s/p; echo secret > \(value)")
      try body(keyhole, logind)
    }
  }

  private static func withLogind(
    on bus: PrivateBus, _ arguments: [String], _ option: String,
    body: (MountedKeyhole, Program) throws -> Void
  ) async throws {
    let variable = "DBUS_SYSTEM_BUS_ADDRESS=\(bus.address)"
    let logind = try Program(
      ["/usr/bin/python3", "-c", logind, "\(getuid())"] + arguments, environment: [variable], directory: "/")
    defer {
      logind.kill()
      _ = try? logind.waitForEnd(until: Deadline(in: .seconds(10)))
    }
    #expect(try logind.line() == "ready")
    try await withKeyhole(option, environment: [variable, "DBUS_SESSION_BUS_ADDRESS=\(bus.address)"]) {
      keyhole in
      try body(keyhole, logind)
    }
    withExtendedLifetime(bus) {}
  }

  /// Whether the mount says this of its lock before long. Until it listens, what is said is lost: so it is said again.
  private static func isLocked(_ expected: Bool, _ keyhole: MountedKeyhole, saying: () throws -> Void) throws
    -> Bool
  {
    try holds(within: .seconds(60)) {
      try saying()
      return try keyhole.sh("jq .locked .keyhole/status").text == "\(expected)\n"
    }
  }

  @Test(arguments: [
    ("Lock own", "Unlock own"), ("hint own true", "hint own false"), ("sleep true", "sleep false"),
  ])
  func sessionLocksAndOpensAgain(lock: String, unlock: String) async throws {
    try await Self.withLogind { keyhole, logind in
      #expect(try Self.isLocked(true, keyhole) { try logind.send(lock + "\n") })
      try keyhole.refuses("cat \(Self.value)", .noKey)
      try keyhole.check("keyhole status | grep -c '^locked by .*lock screen'", prints: "1\n")
      #expect(try Self.isLocked(false, keyhole) { try logind.send(unlock + "\n") })
      try keyhole.check("cat \(Self.value)", prints: "secret")
    }
  }

  /// The copy of `keyhole edit` goes with suspend and the lock screen, through a mount and without one.
  @Test(arguments: [true, false], ["Lock own", "hint own true", "sleep true"])
  func anEditedCopyIsWiped(isMounted: Bool, said: String) async throws {
    try await Self.withLogind { keyhole, logind in
      #expect(try logind.line() == "held")
      if !isMounted { try keyhole.unmount() }
      // The editor saves, and then looks at its file until it can't be read any more.
      let script = "printf saved > \"$1\"; echo ready; until ! cat \"$1\" > /dev/null 2>&1; do :; done"
      let edit = try Program(
        ["/usr/bin/env", "EDITOR=sh -c '\(script)' sh", Products.keyhole, "edit", Self.value],
        environment: keyhole.world.environment, directory: keyhole.world.outside)
      #expect(try edit.line() == "ready")
      // Of the command, beside that of the mount, which it has before or after its editor is ready.
      let isOver = try holds(within: .seconds(60)) {
        try logind.send(said + "\n")
        return (try? edit.waitForEnd(until: Deadline(in: .milliseconds(200)))) != nil
      }
      #expect(isOver)
      let output = try edit.finish()
      #expect(output.status == 1 && output.error.contains("was locked while the editor ran"), "\(output)")
      if !isMounted { try keyhole.start() }
      _ = try Self.isLocked(false, keyhole) { try logind.send("hint own false\nUnlock own\nsleep false\n") }
      try keyhole.check("cat \(Self.value)", prints: "secret")
    }
  }

  @Test func wakingOpensNothingThatTheLockScreenKeepsLocked() async throws {
    try await Self.withLogind { keyhole, logind in
      #expect(try Self.isLocked(true, keyhole) { try logind.send("Lock own\n") })
      // Opened by waking, it would be locked once more by what follows.
      try logind.send("sleep true\nsleep false\nLock own\n")
      #expect(try Self.isLocked(false, keyhole) { try logind.send("Unlock own\n") })
      try keyhole.check(
        "{ dd if=.keyhole/events iflag=nonblock status=none 2> $OUT/end || true; } | jq -r .kind | grep lock",
        prints: "locked\nunlocked\n")
    }
  }

  @Test func lockedUnderAPassphraseStaysLocked() async throws {
    try await Self.withLogind { keyhole, logind in
      try keyhole.check(
        "echo horse | keyhole passphrase --weak --cost 14 2> /dev/null", within: LockTests.patience)
      #expect(try Self.isLocked(true, keyhole) { try logind.send("sleep true\n") })
      try logind.send("sleep false\nUnlock own\n")
      try keyhole.check("jq .locked .keyhole/status", prints: "true\n")
      try keyhole.check(
        "echo horse | keyhole unlock; cat \(Self.value)", prints: "secret", within: LockTests.patience)
    }
  }

  @Test func sleepWaitsForTheLock() async throws {
    try await Self.withLogind { keyhole, logind in
      #expect(try logind.line() == "held")
      try keyhole.check(
        "keyhole status | grep '^locked by' | grep -o 'suspend.*'", prints: "suspend, which waits for it\n")
      for _ in 0..<3 {
        try logind.send("sleep true\n")
        #expect(try logind.line() == "released")
        // Locked before it let go, not soon after.
        try keyhole.refuses("cat \(Self.value)", .noKey)
        try logind.send("sleep false\n")
        #expect(try logind.line() == "held")
      }
      #expect(try holds { try keyhole.sh("cat \(Self.value)").text == "secret" })
      try keyhole.unmount()
      #expect(try logind.line() == "released")
    }
  }

  /// The lock of the session, and sleep, lock a Secret Service as `keyhole lock` does, and no window of its
  /// opens when the session does.
  @Test(arguments: [["Lock own", "Unlock own"], ["sleep true", "sleep false"]])
  func secretServiceIsLockedToo(_ said: [String]) async throws {
    let bus = try PrivateBus()
    try bus.startKeyring()
    try bus.run("secret-tool store --label=l service s account p", input: Array("secret".utf8))
    try await Self.withLogind(on: bus, [], "keychain=secret-service") { keyhole, logind in
      try keyhole.check("cat \(Self.value)", prints: "secret")
      #expect(try Self.isLocked(true, keyhole) { try logind.send(said[0] + "\n") })
      try keyhole.refuses("cat \(Self.value)", .noKey)
      #expect(try bus.run(Self.locked).contains("<true>"))
      try logind.send(said[1] + "\n" + said[0] + "\n")
      try keyhole.refuses("cat \(Self.value)", .noKey)
      #expect(try bus.run(Self.locked).contains("<true>"))
    }
  }

  private static let locked =
    "gdbus call --session -d org.freedesktop.secrets -o /org/freedesktop/secrets/collection/login "
    + "-m org.freedesktop.DBus.Properties.Get org.freedesktop.Secret.Collection Locked"

  @Test func statusSaysWhereSleepDoesNotWait() async throws {
    try await Self.withLogind("refuse") { keyhole, logind in
      let isSaid = try holds {
        try keyhole.sh("keyhole status").text.contains(
          "suspend, which does not wait for it: logind says: not today")
      }
      #expect(isSaid)
      #expect(try Self.isLocked(true, keyhole) { try logind.send("sleep true\n") })
    }
  }

  @Test func othersSessionsLockNothing() async throws {
    try await Self.withLogind { keyhole, logind in
      // The second is the user's own: once that is heard, the first one was.
      try logind.send("Lock other\nhint other true\n")
      try keyhole.check("cat \(Self.value)", prints: "secret")
      #expect(try Self.isLocked(true, keyhole) { try logind.send("Lock own\n") })
      #expect(try Self.isLocked(false, keyhole) { try logind.send("Unlock own\n") })
      try logind.send("Lock other\nhint other true\nUnlock own\n")
      try keyhole.check("cat \(Self.value)", prints: "secret")
    }
  }

  @Test func withoutLogindTheStatusSaysSo() async throws {
    try await withKeyhole { keyhole in
      try Self.expect("there is no system bus", keyhole)
    }
    let bus = try PrivateBus()
    try await withKeyhole(environment: ["DBUS_SYSTEM_BUS_ADDRESS=\(bus.address)"]) { keyhole in
      try Self.expect("there is no logind on the system bus", keyhole)
      bus.stop()
      try Self.expect("the system bus is gone", keyhole)
    }
  }

  private static func expect(_ reason: String, _ keyhole: MountedKeyhole) throws {
    let isSaid = try holds {
      try keyhole.sh("keyhole status").text.contains("because \(reason)")
    }
    #expect(isSaid, "\(reason)")
  }
}
