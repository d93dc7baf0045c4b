import Testing

/// Obstacles by another user of the machine: a runtime folder of theirs, and links below a mount point.
@Suite(
  .timeLimit(.minutes(2)), .enabled(if: Privileges.isRoot, "Only root can play several users."))
struct ForeignFolderAsRootTests {
  /// audit.md M8: berta's folder, with a mount's socket and its note.
  private static let listener = """
    import os, socket, sys
    folder = sys.argv[1] + "/keyhole"; process = os.getpid()
    s = socket.socket(socket.AF_UNIX); s.bind(f"{folder}/{process}.control"); s.listen(16)
    os.chmod(f"{folder}/{process}.control", 0o777)
    with open(f"{folder}/{process}.mount", "wb") as note: note.write(b"/home/berta/Keyhole\\0vault\\0")
    os.chmod(f"{folder}/{process}.mount", 0o644)
    print("ready", flush=True)
    while True:
      connection, _ = s.accept(); connection.settimeout(5)
      with open("/home/berta/received", "ab") as log:
        log.write(b"connected\\n"); log.flush()
        try: log.write(connection.recv(65536)); log.flush()
        except OSError: pass
    """

  /// `around`: who owns the folder that anna's XDG_RUNTIME_DIR names; what is in it for Keyhole is berta's.
  @Test(arguments: ["berta", "anna"]) func runtimeFolderOfAnotherUserIsUsedByNoClient(around: String)
    async throws
  {
    try await withMachine { machine in
      let folder = "/home/srv/run"
      try machine.check(as: .anna, "printf secret | keyhole set keychain/generic/s/a/value")
      try machine.check(
        as: .root,
        "mkdir -m 755 \(folder) \(folder)/keyhole; chown \(around) \(folder); chown berta \(folder)/keyhole")
      try machine.check(
        as: .berta,
        """
        keyhole mount; chmod 755 ~
        cat > listener.py <<'END'
        \(Self.listener)
        END
        mkfifo ready; (setsid /usr/bin/python3 listener.py \(folder) > ready 2>&1 < /dev/null &); head -n 1 ready
        """, prints: "ready\n")
      let foreign = "export XDG_RUNTIME_DIR=\(folder); "
      if around == "anna" {
        try machine.fails(
          as: .anna, foreign + "keyhole mount", status: 1,
          "\(folder)/keyhole can't be used: it belongs to another user")
        try machine.check(as: .anna, "ls ~/Keyhole 2> /dev/null | wc -l", prints: "0\n")
      } else {
        try machine.check(
          as: .anna, foreign + "keyhole mount; ls ~/Keyhole", prints: "defaults\nkeychain\ntemplates\nviews\n"
        )
      }
      for command in [
        "printf 'horse\\n' | keyhole unlock", "keyhole lock", "keyhole status",
        "keyhole get keychain/generic/s/a/value", "printf other | keyhole set keychain/generic/s/a/value",
        "printf 'horse\\n' | keyhole passphrase --weak", "printf 'horse\\n' | keyhole unlock",
        "keyhole doctor", "keyhole ls keychain",
        "wrapper secret service text", "wrapper get service", "keyhole unmount ~berta/Keyhole",
        "keyhole unmount",
      ] {
        _ = try machine.sh(foreign + "timeout 60 \(command)", as: .anna)
        let received = try machine.sh("cat received 2> /dev/null", as: .berta)
        #expect(received.bytes.isEmpty, "\(command): \(received)")
      }
      try machine.fails(as: .anna, foreign + "printf 'horse\\n' | keyhole unlock", status: 3, "")
      try machine.check(as: .berta, "ls ~/Keyhole", prints: "defaults\nkeychain\ntemplates\nviews\n")
    }
  }

  // MARK: uid=

  /// audit.md M9: the mount point is exchanged with a symbolic link all the time.
  private static let exchange = """
    import ctypes, os
    libc = ctypes.CDLL(None); os.chdir("/home/anna/d")
    open("ready", "w").write("ready\\n")
    while True: libc.renameat2(-100, b"mp", -100, b"link", 2)
    """

  @Test func rootMountsOnNothingThatALinkNames() async throws {
    try await withMachine { machine in
      try machine.check(as: .root, "mkdir -m 755 /home/srv/owned")
      try machine.check(
        as: .anna,
        """
        mkdir -m 755 d d/mp; chmod 755 ~; ln -s /home/srv/owned d/link
        cat > exchange.py <<'END'
        \(Self.exchange)
        END
        mkfifo d/ready; (setsid /usr/bin/python3 exchange.py > /dev/null 2>&1 < /dev/null &); cat d/ready
        """, prints: "ready\n")
      let result = try machine.sh(
        """
        mounted=0
        for round in $(seq 25); do
          if mount -t keyhole keyhole /home/anna/d/mp -o uid=anna 2>> errors; then
            mounted=$((mounted + 1))
            grep -c ' /home/srv/owned ' /proc/self/mountinfo
            while grep -q ' /home/anna/d/' /proc/self/mountinfo; do
              for path in $(grep -o ' /home/anna/d/[a-z]* ' /proc/self/mountinfo); do umount -l -c $path 2> /dev/null; done
            done
          fi
        done
        grep -c ' /home/srv/owned ' /proc/self/mountinfo; echo "mounted $mounted"; cut -d: -f3- errors | sort | uniq -c >&2
        """, as: .root)
      let lines = result.lines
      #expect(lines.dropLast().allSatisfy { $0 == "0" } && !lines.isEmpty, "\(result)")
      #expect(try machine.sh("ls -A /home/srv/owned", as: .root).bytes.isEmpty)
    }
  }

  @Test func linkOnTheWayIsRefused() async throws {
    try await withMachine { machine in
      try machine.check(as: .root, "mkdir -m 755 /home/srv/owned /home/srv/owned/sub")
      try machine.check(
        as: .anna, "chmod 755 ~; ln -s /home/srv/owned way; ln -s /home/srv/owned/sub last; mkdir own")
      let link = "a part of it is a symbolic link"
      try machine.fails(as: .root, "keyhole mount -o uid=anna /home/anna/way/sub", status: 1, link)
      try machine.fails(
        as: .root, "keyhole mount -o uid=anna /home/anna/last", status: 1, link)
      // mount(8) calls its helper with the folder that the link leads to.
      for path in ["/home/anna/way/sub", "/home/anna/last", "/home/anna/../anna/last"] {
        try machine.fails(
          as: .root, "mount -t keyhole keyhole \(path) -o uid=anna", status: 32, "it belongs to root")
      }
      try machine.check(as: .root, "grep -c /home/srv/owned /proc/self/mountinfo || true", prints: "0\n")
      try machine.check(
        as: .root,
        """
        mount -t keyhole keyhole /home/srv/owned/sub -o uid=anna; umount /home/srv/owned/sub
        echo 'keyhole /home/srv/owned/sub keyhole uid=anna 0 0' >> /etc/fstab; mount -a; umount /home/srv/owned/sub
        """)
      try machine.check(
        as: .root, "mount -t keyhole keyhole /home/anna/own -o uid=anna; umount /home/anna/own")
    }
  }

  /// audit.md L4: what runs for the user gets nothing of root's environment.
  @Test func programsOfAUsersMountHaveAnEnvironmentOfTheirOwn() async throws {
    try await withMachine { machine in
      try machine.check(
        as: .anna,
        "printf '#!/bin/sh\\nenv | sort > /home/anna/environment; env > /home/anna/second\\nexit 0\\n' > decide; chmod +x decide"
      )
      try machine.check(
        as: .root,
        """
        export AWS_SECRET_ACCESS_KEY=root-secret DISPLAY=:9 XAUTHORITY=/run/x SSH_AUTH_SOCK=/run/agent
        mount -t keyhole keyhole /home/mnt -o uid=anna,auth-command=/home/anna/decide
        """)
      try machine.check(
        as: .anna,
        """
        cd /home/mnt; mkdir -p keychain/generic/s/a; setfattr -n user.keyhole.access -v userPresence keychain/generic/s/a
        printf secret > keychain/generic/s/a/value; cat keychain/generic/s/a/value
        grep -cE 'root|AWS|DISPLAY|XAUTHORITY|SSH_' ~/environment || true; grep -E '^(HOME|USER|LOGNAME)=' ~/environment
        """,
        prints: "secret0\nHOME=/home/anna\nLOGNAME=anna\nUSER=anna\n")
    }
  }
}
