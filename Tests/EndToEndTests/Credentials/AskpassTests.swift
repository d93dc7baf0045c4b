import Testing

/// ssh-add(1), git(1) and sudo(8) of the system, which have a question answered.
@Suite(.timeLimit(.minutes(3))) struct AskpassTests {
  private static let agent = """
    eval "$(ssh-agent -a "$OUT/agent")" > /dev/null; trap 'kill $SSH_AGENT_PID' EXIT
    export SSH_ASKPASS=$OUT/bin/keyhole-askpass SSH_ASKPASS_REQUIRE=force
    ssh-keygen -q -t ed25519 -N 'right one' -f "$OUT/key"; path=$(printf %s "$OUT/key" | sed 's|/|%2F|g')
    add() { ssh-add -q "$OUT/key" < /dev/null 2> "$OUT/errors"; echo $?; ssh-add -l | grep -c ED25519; }

    """

  @Test func sshAddGetsThePassphraseOfItsKey() async throws {
    try await withWorld { world in
      try world.checkHelpers(
        Self.agent + """
          add; echo 'right one' | keyhole set "keychain/generic/ssh/$path"; add
          cd "$OUT"; keyhole-askpass "Enter passphrase for key 'key': "; cd bin; keyhole-askpass "Enter passphrase for key 'key': " 2> /dev/null
          """, prints: "1\n0\n0\n1\nright one\n")
    }
  }

  /// A wrong passphrase is given once: ssh-add asks again, and gets no second answer.
  @Test func aWrongAnswerIsNotGivenAgain() async throws {
    try await withWorld { world in
      try world.checkHelpers(
        Self.agent + """
          echo wrong | keyhole set "keychain/generic/ssh/$path"
          printf '#!/bin/sh\\necho "$1" >> "$OUT/asked"\\nexec keyhole-askpass "$1"\\n' > "$OUT/ask"; chmod +x "$OUT/ask"
          SSH_ASKPASS=$OUT/ask add; wc -l < "$OUT/asked"
          ask() { keyhole-askpass "Enter passphrase for key '$OUT/key': "; echo $?; }
          ask 2> /dev/null; ask 2> "$OUT/errors"; grep -c 'no terminal' "$OUT/errors"; ls "$XDG_RUNTIME_DIR/keyhole" | grep -c askpass
          """, prints: "1\n0\n2\nwrong\n0\n1\n1\n1\n")
    }
  }

  @Test func gitAsksForUserAndPassword() async throws {
    try await withWorld { world in
      try world.checkHelpers(
        """
        printf 'protocol=https\\nhost=a.example\\nusername=anna\\npassword=one\\n' | git-credential-keyhole store
        export GIT_ASKPASS=$OUT/bin/keyhole-askpass; cd "$OUT"
        printf 'protocol=https\\nhost=a.example\\n' | git credential fill
        printf 'protocol=https\\nhost=b.example\\n' | git credential fill > got 2> errors || cat got
        """,
        prints: """
          protocol=https
          host=a.example
          username=anna
          password=one

          """)
    }
  }

  /// A pinentry that writes down its commands, and types a word.
  private static let pinentry = #"""
    #!/bin/sh
    echo OK
    while read -r line; do
      echo "$line" >> "$(dirname "$0")/../told"
      case $line in GETINFO*) echo "D qt"; echo OK ;; GETPIN) echo "D typed"; echo OK ;; *) echo OK ;; esac
    done
    """#

  /// A person answers in a dialog, which names the program beside the program's own question.
  @Test func aPersonAnswersAnotherQuestion() async throws {
    try await withWorld(environment: ["DISPLAY=:9999"]) { world in
      try world.check(
        "mkdir \"$OUT/bin\"; cat > \"$OUT/bin/pinentry\"; chmod +x \"$OUT/bin/pinentry\"",
        sending: Array(Self.pinentry.utf8))
      let output = try world.sh(
        World.helpers + """
          setsid -w keyhole-askpass 'Enter PIN for %0AProgram: token'; cat "$OUT/told" | grep SETDESC
          """)
      #expect(output.lines.first == "typed" && output.lines.count == 2, "\(output)")
      let description = output.lines.last ?? ""
      #expect(
        description.contains("%0AIt asks:%0A  Enter PIN for %250AProgram: token%0A")
          && description.hasPrefix("SETDESC Started by: "), "\(output)")
    }
  }

  /// A session of logind with a window, on a bus of its own: there a plain yes counts.
  private static let session = #"""
    cat > "$OUT/logind" << 'END'
    import os, dbus, dbus.service, dbus.mainloop.glib
    from gi.repository import GLib
    LOGIN = "org.freedesktop.login1"
    dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
    bus = dbus.SystemBus()
    name = dbus.service.BusName(LOGIN, bus)
    path = dbus.ObjectPath("/org/freedesktop/login1/session/_31")
    class Manager(dbus.service.Object):
        @dbus.service.method(LOGIN + ".Manager", out_signature="a(susso)")
        def ListSessions(self):
            return [("1", dbus.UInt32(os.getuid()), "user", "seat0", path)]
    class Session(dbus.service.Object):
        @dbus.service.method("org.freedesktop.DBus.Properties", in_signature="ss", out_signature="v")
        def Get(self, interface, name):
            return {"Active": True, "Remote": False, "Type": "x11", "Display": ":9999", "TTY": ""}[name]
    objects = Manager(bus, "/org/freedesktop/login1"), Session(bus, path)
    print("ready", flush=True)
    GLib.MainLoop().run()
    END
    cat > "$OUT/bin/pinentry" << 'END'
    #!/bin/sh
    echo OK
    while read -r line; do
      echo "$line" >> "$(dirname "$0")/../told"
      case $line in GETINFO*) echo "D qt"; echo OK ;; CONFIRM*) cat "$(dirname "$0")/../says" ;; *) echo OK ;; esac
    done
    END
    chmod +x "$OUT/bin/pinentry"; mkfifo "$OUT/ready"
    exec 3< <(exec dbus-daemon --session --nofork --print-address=1); processes=$!
    read -r DBUS_SYSTEM_BUS_ADDRESS <&3; export DBUS_SYSTEM_BUS_ADDRESS
    python3 "$OUT/logind" > "$OUT/ready" & processes="$processes $!"; read -r line < "$OUT/ready"

    """#

  /// ssh-agent has each use of a key that was added with -c confirmed. The button for the answer that is not meant is the first one.
  @Test func aPersonConfirmsTheUseOfAKey() async throws {
    try await withWorld { world in
      let output = try world.sh(
        World.helpers + Self.session + #"""
          export SSH_ASKPASS=$OUT/bin/keyhole-askpass SSH_ASKPASS_REQUIRE=force
          eval "$(ssh-agent -a "$OUT/agent")" > /dev/null; trap 'kill $SSH_AGENT_PID $processes' EXIT
          ssh-keygen -q -t ed25519 -N '' -f "$OUT/key"; ssh-add -q -c "$OUT/key" 2> /dev/null
          sign() { echo x | ssh-keygen -q -Y sign -f "$OUT/key.pub" -n file 2>&1 | head -n 1 | tr -d '\r'; }
          echo 'ERR 83886194 the second button' > "$OUT/says"; sign
          echo OK > "$OUT/says"; sign; echo 'ERR 83886179 cancelled' > "$OUT/says"; sign
          grep -c 'SETDESC Started by: .*ssh-agent.*Allow use of key' "$OUT/told"; grep -e SETOK -e SETNOTOK "$OUT/told" | sort -u
          """#, within: .seconds(60))
      #expect(
        output.text == """
          -----BEGIN SSH SIGNATURE-----
          Couldn't sign message (signer): agent refused operation
          Couldn't sign message (signer): agent refused operation
          3
          SETNOTOK Allow
          SETOK Refuse

          """, "\(output)")
    }
  }

  @Test func anUnknownQuestionGetsNoSecret() async throws {
    try await withWorld { world in
      let output = try world.sh(
        World.helpers + """
          echo hunter2 | keyhole set keychain/generic/sudo/anna
          for text in 'Password: ' '(anna@evil) [sudo] password for anna: ' '[sudo] password for bert: ' ''; do
            keyhole-askpass "$text" < /dev/null; echo $?
          done
          SSH_ASKPASS_PROMPT=confirm keyhole-askpass '[sudo] password for anna: ' < /dev/null; echo $?
          SSH_ASKPASS_PROMPT=none keyhole-askpass 'Touch the key'; echo $?
          keyhole-askpass '[sudo] password for anna: '
          """)
      #expect(output.text == "1\n1\n1\n1\n1\n0\nhunter2\n", "\(output)")
      #expect(output.error.contains("Touch the key") && !output.error.contains("hunter2"), "\(output)")
    }
  }
}
