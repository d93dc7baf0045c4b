import Testing

/// git, of the system, over HTTP with basic authorization, and the helper by itself.
@Suite(.timeLimit(.minutes(5))) struct GitCredentialTests {
  /// git-http-backend(1) behind a password, which the file `$OUT/password` holds.
  private static let server = #"""
    import base64, http.server, os, subprocess, sys
    out = os.environ["OUT"]
    class Server(http.server.BaseHTTPRequestHandler):
        def log_message(self, *arguments): pass
        def answer(self):
            with open(out + "/password") as file: expected = file.read().strip()
            given = self.headers.get("Authorization", "").removeprefix("Basic ")
            if base64.b64decode(given).decode() != expected:
                self.send_response(401); self.send_header("WWW-Authenticate", 'Basic realm="git"')
                self.send_header("Content-Length", "0"); self.end_headers()
                return
            path, _, query = self.path.partition("?")
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            result = subprocess.run(["git", "http-backend"], input=body, stdout=subprocess.PIPE, env=dict(
                os.environ, GIT_PROJECT_ROOT=out, GIT_HTTP_EXPORT_ALL="1", PATH_INFO=path, QUERY_STRING=query,
                REQUEST_METHOD=self.command, CONTENT_TYPE=self.headers.get("Content-Type", ""), REMOTE_USER="x"))
            head, _, content = result.stdout.partition(b"\r\n\r\n")
            lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self.send_response(int(lines.pop("Status", "200").split()[0]))
            for name, value in lines.items(): self.send_header(name, value)
            self.send_header("Content-Length", str(len(content))); self.end_headers(); self.wfile.write(content)
        do_GET = do_POST = answer
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    print(server.server_port, flush=True); os.close(1)
    server.serve_forever()
    """#

  /// The first clone asks by GIT_ASKPASS and stores; the second one needs no answer; a refused password is erased.
  @Test(arguments: [true, false]) func gitStoresGetsAndErases(isMounted: Bool) async throws {
    try await withKeyhole { keyhole in
      if !isMounted { _ = try keyhole.unmount() }
      let world = keyhole.world
      try world.addServer(Self.server)
      try world.checkHelpers(
        World.server + """
          cd "$OUT"; git init -q --bare repo.git; git -C repo.git config http.receivepack true
          keyhole credential install git > /dev/null
          echo anna:hunter2 > password; start_server; url=http://127.0.0.1:$port/repo.git
          printf '#!/bin/sh\\ncase $1 in Username*) echo anna ;; *) echo hunter2 ;; esac\\n' > ask; chmod +x ask
          GIT_ASKPASS=$OUT/ask git clone -q $url one
          item="keychain/internet/127.0.0.1/anna;protocol=http;port=$port"
          keyhole get "$item"; echo; keyhole attr "$item" user.keyhole.label | sed "s/$port/PORT/"
          before=$(keyhole attr "$item" user.keyhole.modified)
          GIT_ASKPASS=/bin/false git clone -q $url two && echo cloned
          cd two; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x
          GIT_ASKPASS=/bin/false git push -q && echo pushed
          [ "$before" = "$(keyhole attr "$item" user.keyhole.modified)" ] || echo "stored again"
          # Another repository of the host has the same password, another port has none.
          printf 'protocol=http\\nhost=127.0.0.1:1\\n' | git credential-keyhole get
          echo anna:other > ../password
          GIT_ASKPASS=/bin/false git fetch -q 2> /dev/null || echo refused
          keyhole ls keychain/internet
          """,
        prints: """
          warning: You appear to have cloned an empty repository.
          hunter2
          Git: http://127.0.0.1:PORT
          warning: You appear to have cloned an empty repository.
          cloned
          pushed
          refused

          """)
    }
  }

  private static let store = """
    ask() { printf '%b' "$2" | git-credential-keyhole $1; }
    ask store 'protocol=https\\nhost=a.example\\nusername=anna\\npassword=one\\n'

    """

  @Test func onlyTheSamePlaceIsGiven() async throws {
    try await withWorld { world in
      try world.checkHelpers(
        Self.store + """
          for place in b.a.example a.example:443 A.example example; do ask get "protocol=https\\nhost=$place\\n\\n"; done
          ask get 'protocol=http\\nhost=a.example\\n'; ask get 'protocol=https\\nhost=a.example\\npath=x.git\\n'
          ask get 'protocol=https\\nhost=a.example\\nusername=bert\\n'; ask get 'host=a.example\\n'; ask get 'protocol=https\\n'
          ask future 'protocol=https\\nhost=a.example\\n'; echo none
          ask get 'protocol=https\\nhost=a.example\\nfuture=1\\n'
          ask store 'protocol=https\\nhost=a.example\\npath=x.git\\nusername=bert\\npassword=two\\n'
          ask get 'protocol=https\\nhost=a.example\\npath=x.git\\n'; ask get 'protocol=https\\nhost=a.example\\n'
          """,
        prints: """
          none
          username=anna
          password=one
          username=bert
          password=two
          username=anna
          password=one

          """)
    }
  }

  @Test func severalUsersAreNotChosenFrom() async throws {
    try await withWorld { world in
      try world.checkHelpers(
        Self.store + """
          ask store 'protocol=https\\nhost=a.example\\nusername=bert\\npassword=two\\n'
          ask get 'protocol=https\\nhost=a.example\\n'; ask get 'protocol=https\\nhost=a.example\\nusername=bert\\n'
          """,
        prints: """
          keyhole: note: several users are stored for https://a.example (anna, bert), and git named none; `git config --global credential.https://a.example.username NAME` chooses one
          username=bert
          password=two

          """)
    }
  }

  @Test func onlyTheRefusedPasswordIsErased() async throws {
    try await withWorld { world in
      try world.checkHelpers(
        Self.store + """
          ask erase 'protocol=https\\nhost=a.example\\nusername=anna\\npassword=two\\n'
          ask erase 'protocol=https\\nhost=a.example\\nusername=bert\\npassword=one\\n'
          ask erase 'protocol=https\\nhost=a.example\\n'
          ask get 'protocol=https\\nhost=a.example\\n'
          ask store 'protocol=https\\nhost=a.example\\nusername=anna\\npassword=two\\n'
          ask erase 'protocol=https\\nhost=a.example\\nusername=anna\\npassword=one\\n'
          ask get 'protocol=https\\nhost=a.example\\n'
          ask erase 'protocol=https\\nhost=a.example\\nusername=anna\\npassword=two\\n'
          ask get 'protocol=https\\nhost=a.example\\n'
          """,
        prints: """
          keyhole: note: nothing was erased, as git named no user and password; `keyhole rm 'keychain/internet/a.example/anna;protocol=https'` removes the item
          username=anna
          password=one
          username=anna
          password=two

          """)
    }
  }

  @Test func expiryAndTokenComeBackAndAttributesOfOthersStay() async throws {
    try await withWorld { world in
      try world.checkHelpers(
        Self.store + """
          item='keychain/internet/a.example/anna;protocol=https'
          keyhole attr "$item" user.comment mine
          ask store 'protocol=https\\nhost=a.example\\nusername=anna\\npassword=new\\npassword_expiry_utc=2000000000\\noauth_refresh_token=r\\n'
          ask get 'capability[]=authtype\\nprotocol=https\\nhost=a.example\\n'; keyhole attr "$item" user.comment
          # An authorization of another scheme is for a git that says it can take one.
          ask store 'capability[]=authtype\\nprotocol=https\\nhost=b.example\\nauthtype=Bearer\\ncredential=x\\n'; keyhole ls keychain/internet
          ask get 'protocol=https\\nhost=b.example\\n'; ask get 'capability[]=authtype\\nprotocol=https\\nhost=b.example\\n'
          ask erase 'protocol=https\\nhost=b.example\\nauthtype=Bearer\\ncredential=y\\n'; keyhole ls keychain/internet/b.example
          ask erase 'protocol=https\\nhost=b.example\\nauthtype=Bearer\\ncredential=x\\n'; keyhole ls keychain/internet
          """,
        prints: """
          capability[]=authtype
          username=anna
          password=new
          password_expiry_utc=2000000000
          oauth_refresh_token=r
          mine
          a.example
          b.example
          capability[]=authtype
          credential=x
          authtype=Bearer
          Bearer;protocol=https
          a.example

          """)
    }
  }

  @Test func whatWouldBeReadAsAnotherLineIsRefused() async throws {
    try await withWorld { world in
      let output = try world.sh(
        World.helpers + Self.store + """
          ask get 'protocol=https\\nhost=a.example\\r\\n'; echo $?
          ask get 'protocol=https\\nhost=a.exam\\0ple\\n'; echo $?
          printf 'one\\nhost=evil.example\\n' | keyhole set 'keychain/internet/a.example/anna;protocol=https'
          ask get 'protocol=https\\nhost=a.example\\n'; echo $?
          """)
      #expect(output.text == "1\n1\n1\n", "\(output)")
      #expect(
        output.error.contains("carriage return") && output.error.contains("more than one line")
          && !output.error.contains("evil"), "\(output)")
    }
  }

  @Test func aLockedKeychainGivesNothing() async throws {
    try await withKeyhole("ask-unlock=no") { keyhole in
      let output = try keyhole.world.sh(
        World.helpers + Self.store + """
          printf 'a long passphrase\n' | keyhole passphrase --weak --cost 14 2> /dev/null; keyhole lock
          ask get 'protocol=https\nhost=a.example\n'; echo $?
          ask erase 'protocol=https\nhost=a.example\nusername=anna\npassword=one\n'; echo $?
          printf 'a long passphrase\n' | keyhole unlock; ask get 'protocol=https\nhost=a.example\n'
          """, within: LockTests.patience)
      #expect(
        output.text == "4\n4\nusername=anna\npassword=one\n" && output.error.contains("keyhole unlock"),
        "\(output)")
    }
  }

  /// A rule for git is none for the helper, whatever the helper is called; one for keyhole is, as for `keyhole get`.
  @Test func rulesAreThoseOfKeyhole() async throws {
    try await withKeyhole { keyhole in
      let output = try keyhole.world.sh(
        World.helpers + Self.store + """
          item='keychain/internet/a.example/anna;protocol=https'
          keyhole attr "$item" user.keyhole.programs "allow $(readlink -f "$(command -v git)")
          deny *"
          printf 'protocol=https\\nhost=a.example\\n\\n' | git credential-keyhole get; echo $?
          cp "$(command -v bash)" "$OUT/git"; "$OUT/git" -c 'printf "protocol=https\\nhost=a.example\\n\\n" | git-credential-keyhole get; echo $?'
          keyhole log --json | tail -n 1 | jq -r '.program, .decision, (.parents[0] | sub(" .*"; ""))' | sed "s|$OUT|OUT|"
          """)
      #expect(
        output.text == "5\n5\n\(Products.keyhole)\ndenied\nOUT/git\n" && !output.error.contains("password="),
        "\(output)")
    }
  }

  /// The question is about the program that has started the helper, and so is an answer for the session.
  @Test func theProgramThatIsHelpedIsNamed() async throws {
    let item = "keychain/internet/a.example/anna;protocol=https"
    let decide = "echo \"$KEYHOLE_FOR\" >> \"${0%/*}/for\"; exit 11"
    try await AccessTests.withAsked(decide, flags: "") { keyhole in
      let world = keyhole.world
      try world.checkHelpers(
        Self.store + """
          setfattr -n user.keyhole.access -v devicePasscode "$MOUNT/\(item)"
          cat > "$OUT/ask" << 'END'
          get() { printf 'protocol=https\\nhost=a.example\\n\\n' | "$@" | grep -c password=one; }
          for i in 1 2; do get git -c credential.helper= -c credential.helper=keyhole credential fill; done
          get git-credential-keyhole get; get python3 -c 'import subprocess; subprocess.run(["git-credential-keyhole", "get"])'
          cp /usr/bin/python3 "$OUT/git"; get "$OUT/git" -c 'import subprocess; subprocess.run(["git-credential-keyhole", "get"])'
          keyhole get '\(item)'; keyhole get '\(item)'
          END
          setsid -w bash "$OUT/ask"; echo; sed "s|$OUT|OUT|" "$OUT/../for" 2> /dev/null || sed "s|$OUT|OUT|" \(world.root)/for
          """,
        prints: """
          1
          1
          1
          1
          1
          oneone
          git, by keyhole credential git
          bash, by keyhole credential git
          python3.11, by keyhole credential git
          OUT/git, by keyhole credential git


          """)
    }
  }
}
