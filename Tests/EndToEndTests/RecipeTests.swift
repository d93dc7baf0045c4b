import Glibc
import Testing

/// Documentation/RECIPES.md: the commands of the page itself, with the programs that it names.
@Suite(.timeLimit(.minutes(2))) struct RecipeTests {
  private static let page = try? System.text(Products.documentation + "/RECIPES.md")

  /// The blocks of code of a section.
  private static func blocks(_ name: String) throws -> [String] {
    let page = try #require(page)
    let section = try #require(page.split(separator: "\n## ").first { $0.hasPrefix("\(name)\n") })
    var (blocks, block): ([String], [Substring]?) = ([], nil)
    for line in section.split(separator: "\n", omittingEmptySubsequences: false) {
      guard line.hasPrefix("```") else {
        block?.append(line)
        continue
      }
      if let lines = block { blocks.append(lines.joined(separator: "\n") + "\n") }
      block = block == nil ? [] : nil
    }
    return blocks
  }

  private static func withDocuments(body: (World) throws -> Void) async throws {
    try await withWorld { world in
      try world.check(
        "mkdir ~/documents; echo text > ~/documents/note; echo 'key: value' > ~/documents/secrets.yml")
      try body(world)
    }
  }

  @Test func everyRecipeIsRunOrSaysThatItIsNot() throws {
    let sections = try #require(Self.page).split(separator: "\n## ").dropFirst()
    for section in sections {
      let name = section.prefix { $0 != "\n" }
      #expect(section.contains("**Not run by a test**") != Self.run.contains(String(name)), "\(name)")
    }
    #expect(sections.count == 10)
  }

  private static let run: Set = ["restic", "borg", "age", "ansible", "msmtp", "psql", "direnv"]

  @Test(.enabled(if: System.exists("/usr/bin/restic"), "needs restic")) func restic() async throws {
    try await Self.withDocuments { world in
      let recipe = try Self.blocks("restic")[0]
      try world.check(
        "exec 3>&1 > $OUT/said 2>&1; set -e\n\(recipe)\nrestic dump latest \"$HOME/documents/note\" 2> /dev/null >&3",
        prints: "text\n", within: .seconds(90))
      // It was the password that opened it.
      try world.check(
        "printf x > other; ! RESTIC_REPOSITORY=~/backup restic -p other snapshots > /dev/null 2>&1",
        within: .seconds(60))
    }
  }

  @Test(.enabled(if: System.exists("/usr/bin/borg"), "needs borgbackup")) func borg() async throws {
    try await Self.withDocuments { world in
      let recipe = try Self.blocks("borg")[0]
      try world.check(
        "exec 3>&1 > $OUT/said 2>&1; set -e\n\(recipe)\nborg extract --stdout ::first >&3",
        prints: "text\nkey: value\n",
        within: .seconds(60))
      try world.check("! BORG_REPO=~/borg BORG_PASSPHRASE=x borg list > /dev/null 2>&1", within: .seconds(60))
    }
  }

  @Test(.enabled(if: System.exists("/usr/bin/age"), "needs age")) func age() async throws {
    try await Self.withDocuments { world in
      try world.check("set -e\n" + Self.blocks("age")[0], prints: "text\n")
      try world.check("grep -q ^age1 ~/recipient; ! grep -q text ~/note.age")
    }
  }

  @Test(.enabled(if: System.exists("/usr/bin/ansible-vault"), "needs ansible-core")) func ansible()
    async throws
  {
    try await Self.withDocuments { world in
      let output = try world.sh("set -e\n" + Self.blocks("ansible")[0], within: .seconds(60))
      #expect(output.status == 0 && output.text.hasSuffix("key: value\n"), "\(output)")
      try world.check("grep -q ^.ANSIBLE_VAULT ~/documents/secrets.yml")
    }
  }

  @Test(.enabled(if: System.exists("/usr/bin/direnv"), "needs direnv")) func direnv() async throws {
    try await Self.withDocuments { world in
      try world.check("mkdir project; cat > project/.envrc", sending: Array(Self.blocks("direnv")[0].utf8))
      try world.check(
        """
        printf 'a b$c' | keyhole set keychain/generic/my.app/API_KEY
        direnv allow project 2> /dev/null; direnv exec project sh -c 'printf %s "$API_KEY"' 2> /dev/null
        """, prints: "a b$c")
    }
  }

  /// The secret is made; a container needs an engine that may start one here.
  @Test(.enabled(if: System.exists("/usr/bin/podman"), "needs podman")) func podmanTakesTheSecret()
    async throws
  {
    try await Self.withDocuments { world in
      let recipe = try #require(try Self.blocks("podman")[0].split(separator: "\n").first)
      try world.check(
        """
        printf hunter2-hunter2 | keyhole set keychain/generic/my.app/API_KEY
        { \(recipe); } > /dev/null 2> errors || cat errors
        podman secret ls --format '{{.Name}}' 2> /dev/null; grep -rqs "$(printf hunter2-hunter2 | base64)" ~/.local/share/containers "$XDG_DATA_HOME/containers" && echo kept
        """, prints: "api_key\nkept\n", within: .seconds(60))
    }
  }

  /// A server that prints the credentials that it gets.
  private static let mailServer = """
    import base64, socket
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    s = listener.accept()[0]
    lines = s.makefile("rb")
    s.sendall(b"220 ready\\r\\n")
    while True:
      line = lines.readline().strip()
      if line.startswith(b"EHLO"): s.sendall(b"250-here\\r\\n250 AUTH PLAIN\\r\\n")
      elif line.startswith(b"AUTH PLAIN "):
        print(base64.b64decode(line[11:]).split(b"\\0"), flush=True)
        s.sendall(b"235 ok\\r\\n")
      elif line == b"DATA":
        s.sendall(b"354 go\\r\\n")
        while lines.readline() != b".\\r\\n": pass
        s.sendall(b"250 ok\\r\\n")
      elif line == b"QUIT" or not line: break
      else: s.sendall(b"250 ok\\r\\n")
    """

  @Test(.enabled(if: System.exists("/usr/bin/msmtp"), "needs msmtp")) func msmtp() async throws {
    try await Self.withDocuments { world in
      try System.write(world.outside + "/server", Self.mailServer)
      let server = try world.launch("exec python3 server")
      defer { server.kill() }
      let port = try #require(try server.line())
      // The same configuration, with the stand-in for the host.
      let configuration = try Self.blocks("msmtp")[0].replacing(
        "host mail.example.com", with: "host 127.0.0.1"
      )
      .replacing("port 587", with: "port \(port)").replacing("tls on", with: "tls off")
      try System.write(world.home + "/.msmtprc", configuration)
      try world.check(
        """
        chmod 600 ~/.msmtprc; printf hunter2 | keyhole set keychain/internet/mail.example.com/me
        printf 'Subject: s\\n\\ntext\\n' | msmtp you@example.com
        """)
      #expect(try server.line() == "[b'', b'me', b'hunter2']")
    }
  }

  @Test(.enabled(if: System.exists("/usr/bin/psql"), "needs postgresql-client")) func psql() async throws {
    try await Self.withDocuments { world in
      try world.check("printf hunter2 | keyhole set keychain/generic/postgres/me")
      let server = try StandInPostgres(world, password: "hunter2")
      defer { server.end() }
      try world.check(
        "printf '127.0.0.1:%s:app:me:hunter2\\n' \(server.port) | keyhole set keychain/generic/postgres/pgpass"
      )
      for recipe in try Self.blocks("psql") {
        let command = recipe.replacing("-h db.example.com", with: "-h 127.0.0.1 -p \(server.port) -X -w")
        try world.check(
          command.replacing("\n", with: "") + " -c '\\echo connected as :USER'", prints: "connected as me\n")
      }
      let wrong = try world.sh(
        "printf x | keyhole set keychain/generic/postgres/me; "
          + "keyhole run PGPASSWORD=keychain/generic/postgres/me -- psql -X -w -h 127.0.0.1 -p \(server.port) -U me app < /dev/null"
      )
      #expect(wrong.status == 2 && wrong.error.contains("wrong password"), "\(wrong)")
    }
  }
}
