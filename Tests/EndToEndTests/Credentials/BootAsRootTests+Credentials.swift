import Testing

/// Credentials for units, and sudo(8), on a systemd that has booted.
extension BootAsRootTests {
  /// Stores an item for the unit `app` of anna's, and defines `unit`.
  private static let served = """
    # Without a session bus yet it is the vault that is chosen.
    mkdir -p -m 700 /run/user/4001; chown anna /run/user/4001
    as anna sh -c 'printf hunter2 | keyhole set keychain/generic/systemd/app.service:token'
    systemctl start user@4001; socket=/run/user/4001/keyhole/credentials
    unit() {
      printf '[Service]\\nType=oneshot\\nExecStart=/bin/sh -c "cat $CREDENTIALS_DIRECTORY/token; echo"\\nLoadCredential=token:%s\\n' $socket
    }

    """

  @Test func unitsOfTheSystemGetTheItemsThatAreTheirs() async throws {
    try await withWorld { world in
      let output = try Self.run(
        Self.served + """
          mkfifo -m 666 /tmp/notes; exec 5<> /tmp/notes
          as anna keyhole credential systemd 2> /tmp/notes & read -r note <&5; echo "$note"
          for name in app other; do { unit; echo StandardOutput=append:/result; } > /etc/systemd/system/$name.service; done
          systemctl daemon-reload; systemctl start app
          systemctl start other 2> /dev/null || systemctl show -P ExecMainStatus other; read -r note <&5; echo "$note"
          # A unit that is given another one's item by its own file gets its own all the same.
          as web python3 -c "import socket; socket.socket(socket.AF_UNIX).connect('$socket')" 2>&1 | tail -n 1
          as anna python3 -c "import socket; s = socket.socket(socket.AF_UNIX); s.connect('$socket'); b = b''.join(iter(lambda: s.recv(65536), b'')); print(len(b) > 1 << 20, set(b))"
          read -r note <&5; echo "$note"
          """, in: world)
      #expect(
        output.text == """
          keyhole: note: credentials are served at /run/user/4001/keyhole/credentials
          hunter2
          243
          keyhole: keychain/generic/systemd/other.service:token: other.service asked for token, and there is no such item; `keyhole set keychain/generic/systemd/other.service:token` stores it
          PermissionError: [Errno 13] Permission denied
          True {0}
          keyhole: systemd: a process connected that is no service manager; it got nothing

          """, "\(output)")
    }
  }

  @Test func unitsOfTheUserGetThemOverAnActivatedSocket() async throws {
    try await withWorld { world in
      let output = try Self.run(
        """
        \(Self.served)
        manager() { as anna systemctl --user "$@"; }
        mkdir -p /home/anna/.config/systemd/user; { unit; echo StandardOutput=append:/tmp/token; } > /home/anna/.config/systemd/user/app.service
        chown -R anna /home/anna/.config; manager daemon-reload; manager start keyhole-credentials.socket
        manager start app; cat /tmp/token; manager is-active keyhole-credentials
        manager stop keyhole-credentials.socket keyhole-credentials; [ -e $socket ] || echo gone
        """, in: world)
      #expect(output.text == "hunter2\nactive\ngone\n", "\(output)")
    }
  }

  /// A wrong password is given once, so that PAM does not count three.
  @Test func sudoAsksTheKeychain() async throws {
    try await withWorld { world in
      let output = try Self.run(
        """
        ln -s keyhole /usr/bin/keyhole-askpass; mkdir -p -m 700 /run/user/4001; chown anna /run/user/4001
        echo anna:right | chpasswd; echo 'anna ALL=(ALL) ALL' > /etc/sudoers.d/anna; chmod 440 /etc/sudoers.d/anna
        as anna sh -c 'printf right | keyhole set keychain/generic/sudo/anna'
        as anna env SUDO_ASKPASS=/usr/bin/keyhole-askpass sudo -A id -u
        as anna sh -c 'printf wrong | keyhole set keychain/generic/sudo/anna'
        as anna env SUDO_ASKPASS=/usr/bin/keyhole-askpass sudo -k -A id -u 2> /tmp/errors || grep -o '1 incorrect password attempt' /tmp/errors
        """, in: world)
      #expect(output.text == "0\n1 incorrect password attempt\n", "\(output)")
    }
  }
}
