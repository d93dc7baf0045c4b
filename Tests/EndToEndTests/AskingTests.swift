import Glibc
import KeyringHarness
import Testing

/// Section 8: a person is asked by a real pinentry on a terminal, and by a real PAM.
@Suite(
  .timeLimit(.minutes(2)), .enabled(if: System.exists("/usr/bin/pinentry-curses"), "needs pinentry-curses"))
struct AskingTests {
  private static let item = "keychain/generic/s/p"

  /// A mount whose vault has the passphrase `horse`, and an item with flags.
  private static func withItem(
    _ flags: String, passphrase: Bool = true, reuse: Int = 0, presenceButton: Bool = false,
    environment: [String] = [],
    body: (MountedKeyhole) throws -> Void
  ) async throws {
    let button = "presence-button=\(presenceButton ? "yes" : "no")"
    try await withKeyhole("auth-reuse=\(reuse)", button, environment: environment) { keyhole in
      try keyhole.check("mkdir -p \(item); echo secret > \(item)/value")
      if passphrase { try keyhole.check("echo horse | keyhole passphrase --weak --cost 14 2> /dev/null") }
      try keyhole.check("[ -z '\(flags)' ] || setfattr -n user.keyhole.access -v '\(flags)' \(item)")
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
      // The program first: the text of a question can't stand in for it.
      try terminal.wait(for: "/usr/bin/cat")
      try terminal.wait(for: Self.item)
      try terminal.wait(for: "Passphrase:")
      try terminal.type("wrong\r")
      try terminal.wait(for: "Wrong passphrase; 2 tries are left")
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

  /// A terminal of the asking program's own: a yes would be the program's.
  @Test func onAnyTerminalTheProgramMayHaveMadeThePassphraseIsAskedFor() async throws {
    try await Self.withItem("") { keyhole in
      try keyhole.check("setfattr -n user.keyhole.programs -v 'ask *' \(Self.item)")
      let terminal = try Self.read(keyhole)
      try terminal.wait(for: "Passphrase:")
      try terminal.type("yes\r")
      try terminal.wait(for: "Wrong passphrase; 2 tries are left")
      try terminal.type("horse\r")
      #expect(try Self.finish(terminal, keyhole) == (0, "secret", ""))
    }
  }

  @Test func withoutAPassphraseAYesThereIsEACCESWithTheReason() async throws {
    try await Self.withItem("", passphrase: false) { keyhole in
      try keyhole.check("setfattr -n user.keyhole.programs -v 'ask *' \(Self.item)")
      let terminal = try Self.read(keyhole)
      let (status, text, error) = try Self.finish(terminal, keyhole)
      #expect(status == 1 && text.isEmpty && error.contains("Permission denied"), "\(error)")
      try keyhole.check(
        "keyhole status | grep -c 'by the passphrase only, because there is no system bus'", prints: "1\n"
      )
    }
  }

  /// A display of the asking program's own, which the mount was even started on.
  @Test(.enabled(if: System.exists("/usr/bin/Xvfb"), "needs xvfb"))
  func onADisplayOfTheProgramsOwnAYesIsEACCES() async throws {
    try await withWorld { outer in
      let server = try VirtualDisplay(outer)
      defer { server.end() }
      let display = server.variable
      try await Self.withItem("", passphrase: false, environment: [display]) { keyhole in
        try keyhole.check("setfattr -n user.keyhole.programs -v 'ask *' \(Self.item)")
        try keyhole.refuses("\(display) setsid -w cat \(Self.item)/value", .denied)
      }
    }
  }

  /// logind's place on a system bus of the test's own: one session of the user's, whose terminal stands in a file.
  private static let logind = """
    import sys, dbus, dbus.service, dbus.mainloop.glib
    from gi.repository import GLib
    LOGIN = "org.freedesktop.login1"
    dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
    bus = dbus.SystemBus()
    name = dbus.service.BusName(LOGIN, bus)
    user, file = dbus.UInt32(sys.argv[1]), sys.argv[2]
    class Manager(dbus.service.Object):
        @dbus.service.method(LOGIN + ".Manager", out_signature="a(susso)")
        def ListSessions(self):
            path = dbus.ObjectPath("/org/freedesktop/login1/session/_31")
            return [("9", dbus.UInt32(user + 1), "other", "seat0", path), ("1", user, "own", "seat0", path)]
    class Session(dbus.service.Object):
        @dbus.service.method("org.freedesktop.DBus.Properties", in_signature="ss", out_signature="v")
        def Get(self, interface, name):
            place = open(file).read().strip()
            window = place.startswith(":")
            facts = {
                "Active": True, "Remote": False, "Type": "x11" if window else "tty",
                "Display": place if window else "", "TTY": "" if window else place[5:],
            }
            return facts[name]
    objects = Manager(bus, "/org/freedesktop/login1"), Session(bus, "/org/freedesktop/login1/session/_31")
    print("ready", flush=True)
    GLib.MainLoop().run()
    """

  /// Runs `body` on a mount for which logind names the terminal that `tty` holds.
  private static func withLogind(
    environment: [String] = [], window display: String? = nil, presenceButton: Bool = false,
    body: (MountedKeyhole, _ read: () throws -> Terminal) throws -> Void
  ) async throws {
    let bus = try PrivateBus()
    let variable = "DBUS_SYSTEM_BUS_ADDRESS=\(bus.address)"
    try await withWorld { outer in
      let file = outer.root + "/tty"
      if let display { try System.write(file, display) }
      let service = try Program(
        ["/usr/bin/python3", "-c", logind, "\(getuid())", file], environment: [variable], directory: "/")
      defer { service.kill() }
      #expect(try service.line() == "ready")
      try await withItem(
        presenceButton ? "userPresence" : "", passphrase: presenceButton, presenceButton: presenceButton,
        environment: [variable] + environment
      ) { keyhole in
        if !presenceButton { try keyhole.check("setfattr -n user.keyhole.programs -v 'ask *' \(item)") }
        try body(keyhole) { try read(keyhole, "tty > \(file); TERM=vt220 cat \(item)/value") }
      }
    }
    withExtendedLifetime(bus) {}
  }

  /// A yes counts there, and Return is none.
  @Test func consentOnTheTerminalThatLogindNames() async throws {
    try await Self.withLogind { keyhole, read in
      let refused = try read()
      try refused.wait(for: "Refuse")
      try refused.type("\r")
      try refused.wait(for: "Type yes or")
      try refused.type("\r")
      #expect(try Self.finish(refused, keyhole).0 == 1)
      let allowed = try read()
      try allowed.wait(for: "Allow")
      try allowed.type("\t\r")
      #expect(try Self.finish(allowed, keyhole) == (0, "secret", ""))
    }
  }

  /// With `presence-button` a yes opens what asks for presence; a rule takes the passphrase.
  @Test func aButtonMeetsPresence() async throws {
    try await Self.withLogind(presenceButton: true) { keyhole, read in
      let allowed = try read()
      try allowed.wait(for: "Allow")
      try allowed.type("\t\r")
      #expect(try Self.finish(allowed, keyhole) == (0, "secret", ""))
      for (passphrase, isRight) in [("\u{3}", false), ("horse\r", true)] {
        let always = try read()
        try always.wait(for: "Refuse")
        try always.type("\r")
        try always.wait(for: "Type yes or")
        try always.type("always\r")
        // The dialog that asks for the proof names what is agreed to.
        try always.wait(for: "Your choice is always")
        try always.wait(for: "Passphrase:")
        try always.type(passphrase)
        #expect(try (Self.finish(always, keyhole).0 == 0) == isRight)
        let rules = try keyhole.sh("getfattr --only-values -n user.keyhole.programs \(Self.item)")
        #expect(rules.text == (isRight ? "allow /usr/bin/cat" : ""), "\(rules)")
      }
    }
  }

  /// A pinentry of two buttons, where Return is the first and an empty line what was typed.
  private static let twoButtons = """
    #!/bin/bash
    echo OK ready
    while read -r line; do
      echo "$line" >> "$(dirname "$0")/../told"
      case $line in
        "GETINFO flavor") echo "D gnome3"; echo OK ;;
        GETPIN) word=$(cat "$(dirname "$0")/../word" 2> /dev/null); [ -z "$word" ] || echo "D $word"; echo OK ;;
        *) echo OK ;;
      esac
    done
    """

  /// GNOME's prompter has no button that Return could choose without allowing.
  @Test func returnIsNoYesWhereThereAreTwoButtons() async throws {
    try await withWorld { outer in
      try outer.check(
        "mkdir \(outer.root)/bin; cat > \(outer.root)/bin/pinentry; chmod +x \(outer.root)/bin/pinentry",
        sending: Array(Self.twoButtons.utf8))
      let path = "PATH=\(outer.root)/bin:\(Products.folder):/usr/local/bin:/usr/bin:/bin"
      try await Self.withLogind(environment: [path], window: ":7") { keyhole, _ in
        let read = "cat \(Self.item)/value"
        try keyhole.refuses(read, .denied)
        let told = try System.text(outer.root + "/told")
        #expect(told.contains("SETPROMPT Type yes or ") && !told.contains("CONFIRM"))
        try System.write(outer.root + "/word", "ye")
        #expect(try keyhole.sh(read).status != 0)
        try System.write(outer.root + "/word", "yes")
        #expect(try holds { try keyhole.sh(read).text == "secret" })
      }
    }
  }

  /// A real window of a display that logind names.
  @Test(.enabled(if: hasDisplay, "needs xvfb, xdotool and pinentry-gtk2"))
  func returnIsNoYesInAWindow() async throws {
    try await withWorld { outer in
      try outer.check(
        "mkdir \(outer.root)/bin; ln -s /usr/bin/pinentry-gtk-2 \(outer.root)/bin/pinentry")
      let server = try VirtualDisplay(outer)
      defer { server.end() }
      let display = server.name
      let path = "PATH=\(outer.root)/bin:\(Products.folder):/usr/local/bin:/usr/bin:/bin"
      try await Self.withLogind(environment: [path], window: display) { keyhole, _ in
        let xdotool = { (words: String) in
          try outer.check("DISPLAY=\(display) timeout 60 xdotool \(words)")
        }
        for (keys, text) in [("Return", ""), ("Tab Return", "secret")] {
          let reader = try Self.readInWindow(keyhole, xdotool)
          try xdotool("key \(keys)")
          let output = try reader.finish()
          #expect(output.text == text && (output.status == 0) == !text.isEmpty, "\(keys): \(output)")
        }
      }
    }
  }

  /// The passphrase once is no consent for the next item, on a terminal that may be the program's own.
  @Test func nextQuestionOfTheSameProcessTakesThePassphraseToo() async throws {
    try await Self.withItem("", reuse: 60) { keyhole in
      try keyhole.check(
        """
        mkdir -p keychain/generic/s/second; printf second > keychain/generic/s/second/value
        for name in \(Self.item) keychain/generic/s/second; do setfattr -n user.keyhole.programs -v 'ask *' $name; done
        """)
      let terminal = try Self.read(
        keyhole,
        "bash -c 'read -r one < \(Self.item)/value; read -r two < keychain/generic/s/second/value; echo $one $two'"
      )
      try terminal.wait(for: "Passphrase:")
      try terminal.type("horse\r")
      try terminal.wait(for: "Passphrase:")
      try terminal.type("horse\r")
      #expect(try Self.finish(terminal, keyhole).0 == 0)
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
      try asked.wait(for: "That was wrong; 2 tries are left")
      try asked.wait(for: "assword:")
      try asked.type("staple\r")
      #expect(try Self.finish(asked, keyhole) == (0, "secret", ""))
    }
  }

  /// A pinentry that writes down its commands, and types the passphrase.
  private static func makeStandIn(_ outer: World) throws -> String {
    try outer.check(
      "mkdir \(outer.root)/bin; cat > \(outer.root)/bin/pinentry-curses; chmod +x \(outer.root)/bin/*",
      sending: Array(
        """
        #!/bin/sh
        echo OK
        while read -r line; do
          echo "$line" >> \(outer.root)/told
          [ "$line" != GETPIN ] || echo D horse
          echo OK
        done

        """.utf8))
    return "PATH=\(outer.root)/bin:\(Products.folder):/usr/local/bin:/usr/bin:/bin"
  }

  /// Characters that control a window or terminal are escaped, and parts of a path that are written from right to left do not
  /// exchange their places.
  @Test func namesChangeNothingInADialog() async throws {
    try await withWorld { outer in
      let path = try Self.makeStandIn(outer)
      try await withKeyhole(environment: [path, "TERM=dumb"]) { keyhole in
        let item = "keychain/generic/\u{05D0}/\u{05D1}\u{202E}\u{9B}31m"
        try keyhole.check("mkdir -p '\(item)'; echo secret > '\(item)/value'")
        try keyhole.check("echo horse | keyhole passphrase --weak --cost 14 2> /dev/null")
        try keyhole.check("setfattr -n user.keyhole.access -v devicePasscode '\(item)'")
        let reader = try Self.read(keyhole, "cat keychain/generic/*/*/value")
        #expect(try Self.finish(reader, keyhole) == (0, "secret", ""))
        let told = try System.text(outer.root + "/told")
        #expect(
          told.contains("%0A  keychain/generic/\u{05D0}\u{200E}/\u{05D1}\u{200E}\\u{202e}\\u{9b}31m"),
          "\(told)")
        #expect(!told.unicodeScalars.contains { $0 == "\u{202E}" || $0 == "\u{9B}" })
      }
    }
  }

  /// With a stand-in that writes down its commands.
  @Test func dialogIsToldOfTheTerminalOfTheProgramThatAsks() async throws {
    try await withWorld { outer in
      let path = try Self.makeStandIn(outer)
      try await Self.withItem("devicePasscode", environment: [path, "TERM=dumb"]) { keyhole in
        let reader = try Self.read(keyhole, "TERM=vt220-odd cat \(Self.item)/value")
        #expect(try Self.finish(reader, keyhole) == (0, "secret", ""))
        let told = try System.text(outer.root + "/told")
        #expect(told.contains("OPTION ttytype=vt220-odd\n") && told.contains("OPTION ttyname=/dev/pts/"))
      }
    }
  }

  /// The reader of the secret is ended while the dialog stands on its terminal: the dialog goes, and the modes of the
  /// terminal are what they were.
  @Test func withdrawnDialogLeavesTheTerminalAsItWas() async throws {
    try await Self.withItem("devicePasscode") { keyhole in
      let terminal = try Self.read(
        keyhole,
        "stty -a > $OUT/before; cat \(Self.item)/value & echo $! > $OUT/pid; wait; until stty -a | cmp -s - $OUT/before; do :; done; echo same"
      )
      try terminal.wait(for: "Passphrase:")
      try keyhole.check("kill $(cat $OUT/pid)")
      #expect(try Self.finish(terminal, keyhole).1 == "same\n")
    }
  }

  /// A PAM of the test's own, which knows the password `staple`, and a reader that recognises every finger or none.
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

  private static let hasReader =
    hasWrapper && System.exists("/usr/bin/fprintd-list")
    && !System.files(below: "/usr/lib").filter { $0.hasSuffix("security/pam_fprintd.so") }.isEmpty

  /// fprintd's place on a system bus of the test's own: which fingers are enrolled, and whether the one that is put on
  /// the reader is known, stands in files.
  private static let reader = """
    import sys
    import dbus, dbus.mainloop.glib, dbus.service
    from gi.repository import GLib
    dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
    folder, P = sys.argv[1], "net.reactivated.Fprint."
    bus = dbus.bus.BusConnection(sys.argv[2])
    DEVICE = "/net/reactivated/Fprint/Device/0"
    FACTS = {"name": "Mock", "scan-type": "press", "num-enroll-stages": dbus.Int32(5), "finger-present": False, "finger-needed": False}
    read = lambda name: open(folder + "/" + name).read().split()
    class Manager(dbus.service.Object):
        @dbus.service.method(P + "Manager", out_signature="ao")
        def GetDevices(self): return [dbus.ObjectPath(DEVICE)]
        @dbus.service.method(P + "Manager", out_signature="o")
        def GetDefaultDevice(self): return dbus.ObjectPath(DEVICE)
    class NoFingers(dbus.DBusException):
        _dbus_error_name = P + "Error.NoEnrolledPrints"
    class Device(dbus.service.Object):
        @dbus.service.method(P + "Device", in_signature="s", out_signature="as")
        def ListEnrolledFingers(self, user):
            if not read("fingers"): raise NoFingers("none")
            return read("fingers")
        @dbus.service.method(P + "Device", in_signature="s")
        def Claim(self, user): pass
        @dbus.service.method(P + "Device")
        def Release(self): pass
        @dbus.service.method(P + "Device", in_signature="s")
        def VerifyStart(self, finger): GLib.idle_add(self.verify)
        @dbus.service.method(P + "Device")
        def VerifyStop(self): pass
        def verify(self):
            self.VerifyFingerSelected("any")
            self.VerifyStatus(read("result")[0], True)
            return False
        @dbus.service.signal(P + "Device", signature="s")
        def VerifyFingerSelected(self, finger): pass
        @dbus.service.signal(P + "Device", signature="sb")
        def VerifyStatus(self, result, done): pass
        @dbus.service.method("org.freedesktop.DBus.Properties", in_signature="ss", out_signature="v")
        def Get(self, interface, name): return FACTS[name]
        @dbus.service.method("org.freedesktop.DBus.Properties", in_signature="s", out_signature="a{sv}")
        def GetAll(self, interface): return FACTS
    name = dbus.service.BusName("net.reactivated.Fprint", bus)
    objects = Manager(bus, "/net/reactivated/Fprint/Manager"), Device(bus, DEVICE)
    print("ready", flush=True)
    GLib.MainLoop().run()

    """

  /// The real pam_fprintd and fprintd-list, and what `result` says of the finger.
  private static func withReader(
    _ flags: String,
    body: (MountedKeyhole, _ note: (_ name: String, _ text: String) throws -> Void) throws -> Void
  ) async throws {
    try await withWorld { outer in
      let folder = outer.root + "/pam"
      try outer.check(
        """
        mkdir -p \(folder)/services; cd \(folder); cat > fprintd.py; : > fingers; echo verify-match > result
        printf 'auth required pam_fprintd.so max-tries=1 timeout=10\\naccount required pam_permit.so\\n' > services/keyhole-biometry
        printf 'auth required pam_deny.so\\naccount required pam_deny.so\\n' > services/other
        echo '<busconfig><type>system</type><listen>unix:path=\(folder)/bus</listen><auth>EXTERNAL</auth><policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy></busconfig>' > bus.conf
        """, sending: Array(reader.utf8))
      let environment = [
        "LD_PRELOAD=libpam_wrapper.so", "PAM_WRAPPER=1", "PAM_WRAPPER_SERVICE_DIR=\(folder)/services",
        "DBUS_SYSTEM_BUS_ADDRESS=unix:path=\(folder)/bus",
      ]
      let bus = try Program(
        [
          "/usr/bin/dbus-daemon", "--config-file=\(folder)/bus.conf", "--nofork", "--nopidfile",
          "--print-address=1",
        ],
        environment: outer.environment, directory: folder, log: outer.log)
      defer { bus.kill() }
      _ = try bus.line()
      let service = try Program(
        ["/usr/bin/python3", "\(folder)/fprintd.py", folder, "unix:path=\(folder)/bus"],
        environment: outer.environment, directory: folder, log: outer.log)
      defer { service.kill() }
      #expect(try service.line() == "ready")
      func note(_ name: String, _ text: String) throws {
        try outer.check("cat > \(folder)/\(name)", sending: Array(text.utf8))
      }
      try note("fingers", "right-index-finger\n")
      try await withItem(flags, passphrase: false, environment: environment) { try body($0, note) }
    }
  }

  private static func touchReader(_ keyhole: MountedKeyhole) throws -> (Int32, String, String) {
    let terminal = try read(keyhole)
    try terminal.wait(for: "Then use the reader")
    try terminal.type("\r")
    return try finish(terminal, keyhole)
  }

  @Test(.enabled(if: hasReader, "needs libpam-wrapper and libpam-fprintd"))
  func readerThatPAMHasByFprintd() async throws {
    try await Self.withReader("biometryAny") { keyhole, note in
      #expect(try Self.touchReader(keyhole) == (0, "secret", ""))
      try note("result", "verify-no-match\n")
      let (status, text, error) = try Self.touchReader(keyhole)
      #expect(status == 1 && text.isEmpty && error.contains("Key was rejected"), "\(error)")
      // No finger is enrolled.
      try note("result", "verify-match\n")
      try note("fingers", "")
      #expect(try Self.touchReader(keyhole).0 == 1)
    }
  }

  @Test(.enabled(if: hasReader, "needs libpam-wrapper and libpam-fprintd"))
  func setThatFprintdTellsIsHeldTo() async throws {
    try await Self.withReader("biometryCurrentSet") { keyhole, note in
      #expect(try Self.touchReader(keyhole) == (0, "secret", ""))
      try note("fingers", "right-index-finger left-thumb\n")
      try keyhole.refuses("cat \(Self.item)/value", .keyRevoked)
      try note("fingers", "right-index-finger\n")
      #expect(try Self.touchReader(keyhole) == (0, "secret", ""))
    }
  }

  private static let hasDisplay = ["Xvfb", "xdotool", "pinentry-gtk-2"].allSatisfy {
    System.exists("/usr/bin/" + $0)
  }

  /// A virtual display with pinentry-gtk-2; `told` returns the texts that it had to show.
  private static func withDisplay(
    body: (MountedKeyhole, _ xdotool: (_ words: String) throws -> Void, _ told: () throws -> String) throws ->
      Void
  ) async throws {
    try await withWorld { outer in
      try outer.check(
        "mkdir \(outer.root)/bin; cat > \(outer.root)/bin/pinentry; chmod +x \(outer.root)/bin/pinentry",
        sending: Array("#!/bin/sh\ntee -a \(outer.root)/told | exec pinentry-gtk-2 \"$@\"\n".utf8))
      let server = try VirtualDisplay(outer)
      defer { server.end() }
      let display = server.variable
      let path = "PATH=\(outer.root)/bin:\(Products.folder):/usr/local/bin:/usr/bin:/bin"
      try await withItem("devicePasscode", environment: [path, display]) { keyhole in
        try body(keyhole, { words in try outer.check("\(display) timeout 60 xdotool \(words)") }) {
          try System.text(outer.root + "/told")
        }
      }
    }
  }

  /// Begins to read the secret without a terminal, and returns when the dialog has the keyboard.
  private static func readInWindow(
    _ keyhole: MountedKeyhole, _ xdotool: (String) throws -> Void
  ) throws -> Program {
    let reader = try Program(
      ["/bin/sh", "-c", "cat \(item)/value"], environment: keyhole.world.environment, directory: keyhole.mount
    )
    try xdotool("search --sync --onlyvisible --class pinentry windowfocus --sync > /dev/null")
    return reader
  }

  @Test(.enabled(if: hasDisplay, "needs xvfb, xdotool and pinentry-gtk2"))
  func dialogInAWindow() async throws {
    try await Self.withDisplay { keyhole, xdotool, told in
      let reader = try Self.readInWindow(keyhole, xdotool)
      try xdotool("type --delay 20 horse")
      try xdotool("key Return")
      let output = try reader.finish()
      #expect(output == Output(status: 0, bytes: Array("secret".utf8), error: ""))
      let text = try told()
      let shown = try #require(text.split(separator: "\n").first { $0.hasPrefix("SETDESC ") })
      for part in [Self.item, "Program: /usr/bin/cat", "Command: cat \(Self.item)/value", "Started by: "] {
        #expect(shown.contains(part), "\(shown)")
      }
      #expect(shown.contains(/Started by: \S+ \(\d+\)/), "\(shown)")
    }
  }

  /// GNOME's pinentry opens no window without a session bus: another one does.
  @Test(
    .enabled(
      if: hasDisplay && System.exists("/usr/bin/pinentry-gnome3"),
      "needs xvfb, xdotool, pinentry-gtk2 and pinentry-gnome3"))
  func anotherPinentryOpensTheWindow() async throws {
    try await withWorld { outer in
      try outer.check(
        "mkdir \(outer.root)/bin; cat > \(outer.root)/bin/pinentry; chmod +x \(outer.root)/bin/pinentry",
        sending: Array("#!/bin/sh\nexec pinentry-gnome3 \"$@\"\n".utf8))
      let server = try VirtualDisplay(outer)
      defer { server.end() }
      let display = server.variable
      let path = "PATH=\(outer.root)/bin:\(Products.folder):/usr/local/bin:/usr/bin:/bin"
      try await Self.withItem("devicePasscode", environment: [path, display]) { keyhole in
        let xdotool: (String) throws -> Void = { words in
          try outer.check("\(display) timeout 60 xdotool \(words)")
        }
        let reader = try Self.readInWindow(keyhole, xdotool)
        try xdotool("type --delay 20 horse")
        try xdotool("key Return")
        #expect(try reader.finish() == Output(status: 0, bytes: Array("secret".utf8), error: ""))
      }
    }
  }

  @Test(.enabled(if: hasDisplay, "needs xvfb, xdotool and pinentry-gtk2"))
  func closedWindowIsEACCES() async throws {
    try await Self.withDisplay { keyhole, xdotool, _ in
      let reader = try Self.readInWindow(keyhole, xdotool)
      try xdotool("key Escape")
      let output = try reader.finish()
      #expect(output.status == 1 && output.error.hasSuffix("Permission denied\n"), "\(output)")
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
