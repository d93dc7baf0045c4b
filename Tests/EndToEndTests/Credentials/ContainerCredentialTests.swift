import Testing

/// docker and podman of the system against a stand-in for a registry; docker's daemon, which does the talking for `docker login`,
/// is a stand-in too.
@Suite(.timeLimit(.minutes(5))) struct ContainerCredentialTests {
  private static let server = #"""
    import base64, http.server, json, os
    class Registry(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        def log_message(self, *arguments): pass
        def answer(self, status, body=b"", **headers):
            self.send_response(status)
            for name, value in headers.items(): self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Type", "application/json"); self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD": self.wfile.write(body)
        def do_GET(self):
            if self.path.endswith("/_ping"): return self.answer(200, b"OK", Api_Version="1.41", Ostype="linux")
            if self.path.endswith("/info"): return self.answer(200, b'{"IndexServerAddress":"https://index.docker.io/v1/"}')
            if self.headers.get("Authorization") != "Basic " + base64.b64encode(b"anna:hunter2").decode():
                return self.answer(401, WWW_Authenticate='Basic realm="registry"')
            self.answer(200, b"{}")
        do_HEAD = do_GET
        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path.endswith("/auth"):
                given = json.loads(body)
                right = (given.get("username"), given.get("password")) == ("anna", "hunter2")
                return self.answer(200 if right else 401, b'{"Status":"Login Succeeded","message":"no"}')
            given = json.loads(base64.urlsafe_b64decode(self.headers.get("X-Registry-Auth", "e30=")))
            text = f"{given.get('username')}:{given.get('password')}"
            self.answer(200, (json.dumps({"status": text}) + "\n").encode())
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    print(server.server_port, flush=True); os.close(1)
    server.serve_forever()
    """#

  /// Unpacked by mount-helpers/test, which leaves its daemon out.
  private static let docker =
    [Products.project + "/.build/docker/usr/bin/docker", "/usr/bin/docker"].first { System.exists($0) }

  @Test(.enabled(if: docker != nil, "docker.io is not installed."))
  func dockerLogsInPullsAndLogsOut() async throws {
    try await withWorld { world in
      try world.addServer(Self.server)
      try world.checkHelpers(
        World.server + """
          start_server; place=127.0.0.1:$port; export DOCKER_HOST=tcp://$place
          docker() { \(Self.docker ?? "") "$@" 2>&1 | sed "s/$port/PORT/"; }
          keyhole credential install docker > /dev/null
          echo hunter2 | docker login --username anna --password-stdin $place
          jq -c . "$HOME/.docker/config.json" | sed "s/$port/PORT/"
          keyhole get "keychain/internet/$place/anna"; echo
          docker pull -q $place/image
          docker pull $place/image | grep anna
          docker logout $place; docker-credential-keyhole list
          keyhole credential uninstall docker > /dev/null; jq -c .credsStore "$HOME/.docker/config.json"
          """,
        prints: """
          Login Succeeded
          {"auths":{"127.0.0.1:PORT":{}},"credsStore":"keyhole"}
          hunter2
          127.0.0.1:PORT/image:latest
          anna:hunter2
          Removing login credentials for 127.0.0.1:PORT
          {}
          null

          """)
    }
  }

  @Test(.enabled(if: System.exists("/usr/bin/podman"), "podman is not installed."))
  func podmanLogsInAndOut() async throws {
    try await withWorld { world in
      try world.addServer(Self.server)
      try world.checkHelpers(
        World.server + """
          start_server; place=127.0.0.1:$port
          podman() { /usr/bin/podman "$@" 2> "$OUT/errors" | sed "s/$port/PORT/"; }
          keyhole credential install podman > /dev/null
          echo hunter2 | podman login --tls-verify=false --username anna --password-stdin $place
          keyhole get "keychain/internet/$place/anna"; echo
          podman login --get-login $place
          podman login --tls-verify=false $place < /dev/null
          podman logout $place; docker-credential-keyhole list
          """,
        prints: """
          Login Succeeded!
          hunter2
          anna
          Authenticating with existing credentials for 127.0.0.1:PORT
          Existing credentials are valid. Already logged in to 127.0.0.1:PORT
          Removed login credentials for 127.0.0.1:PORT
          {}

          """)
    }
  }

  /// The texts by which docker and podman tell what happened.
  @Test func protocolIsExact() async throws {
    try await withWorld { world in
      try world.checkHelpers(
        """
        helper() { docker-credential-keyhole "$@"; echo "= $?"; }
        store() { printf '{"ServerURL":"%s","Username":"%s","Secret":"%s"}' "$@" | helper store; }
        helper version; echo https://a.example | helper get; : | helper get; echo '{}' | helper store; helper future
        store a.example anna one; store a.example bert two; echo a.example | helper get
        store a.example anna one; echo a.example | helper get; store b.example '<token>' 'a\\"b'
        echo b.example | helper get; helper list
        echo other.a.example | helper get; echo a.example | helper erase; echo a.example | helper erase; helper list
        # A password of another program is neither given nor replaced.
        echo web | keyhole set keychain/internet/c.example/anna
        echo c.example | helper get; store c.example anna new; keyhole get keychain/internet/c.example/anna; echo
        """,
        prints: """
          docker-credential-keyhole (keyhole) 0.1.0
          = 0
          credentials not found in native keychain
          = 1
          no credentials server URL
          = 1
          no credentials server URL
          = 1
          unknown credential action `future`
          = 1
          = 0
          = 0
          {"ServerURL":"a.example","Username":"bert","Secret":"two"}
          = 0
          = 0
          {"ServerURL":"a.example","Username":"anna","Secret":"one"}
          = 0
          = 0
          {"ServerURL":"b.example","Username":"<token>","Secret":"a\\"b"}
          = 0
          {"a.example":"anna","b.example":"<token>"}
          = 0
          credentials not found in native keychain
          = 1
          = 0
          = 0
          {"b.example":"<token>"}
          = 0
          credentials not found in native keychain
          = 1
          keychain/internet/c.example/anna: this item is another program's and was not replaced; rename it, and log in again
          = 1
          web

          """)
    }
  }
}
