import Testing

/// The helpers of kubectl and aws, asked by the tools themselves. Debian 12 has no kubectl that speaks the protocol: it is run where another
/// one is found.
@Suite(.timeLimit(.minutes(3))) struct ToolTokenTests {
  private static let canAnswer = ["/usr/bin/kubectl", "/usr/bin/openssl"].allSatisfy(System.exists)

  @Test(.enabled(if: canAnswer, "needs kubectl and openssl"))
  func kubectlSendsTheTokenOfItsServer() async throws {
    try await withWorld { world in
      try world.check("cat > \"$OUT/server\"", sending: Array(Self.server.utf8))
      try world.checkHelpers(
        """
        kubectl() { command kubectl "$@" 2> /dev/null; }
        openssl req -x509 -newkey rsa:2048 -nodes -keyout "$OUT/key" -out "$OUT/certificate" -days 1 -subj /CN=localhost \
          -addext subjectAltName=DNS:localhost 2> /dev/null
        mkfifo "$OUT/log"; python3 "$OUT/server" "$OUT/certificate" "$OUT/key" > "$OUT/log" & server=$!
        trap 'kill $server' EXIT
        exec 4< "$OUT/log"; read -r port <&4
        printf tok | keyhole set "keychain/generic/kubernetes/https:%2F%2Flocalhost:$port"
        keyhole credential install kubectl > /dev/null
        kubectl config set-cluster c --server="https://localhost:$port" --certificate-authority="$OUT/certificate" > /dev/null
        kubectl config set-context c --cluster=c --user=keyhole > /dev/null; kubectl config use-context c > /dev/null
        kubectl get --raw /try; echo; grep -m 1 ^/try <&4
        """, prints: "{}\n/try Bearer tok\n")
    }
  }

  private static let server = """
    import http.server, ssl, sys
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            print(self.path, self.headers.get("Authorization"), flush=True)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")
        def log_message(self, *arguments): pass
    server = http.server.HTTPServer(("localhost", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*sys.argv[1:])
    server.socket = context.wrap_socket(server.socket, server_side=True)
    print(server.server_port, flush=True)
    server.serve_forever()

    """

  /// Of PyPI, as `mount-helpers/test` installs it.
  private static let aws = Products.project + "/.build/loaders/python/bin/aws"

  @Test(.enabled(if: System.exists(aws), "needs the aws CLI of PyPI"))
  func theAWSCommandRunsTheProcess() async throws {
    try await withWorld { world in
      try world.checkHelpers(
        """
        printf 'aws_access_key_id = AKIA1234\\naws_secret_access_key = S/+=\\n' | keyhole set keychain/generic/aws/work
        keyhole credential install aws:work > /dev/null
        AWS_EC2_METADATA_DISABLED=true \(Self.aws) configure list --profile work | awk '/_key/ { print $1, $2, $3 }'
        """,
        prints:
          "access_key ****************1234 custom-process\nsecret_key ****************S/+= custom-process\n")
    }
  }
}
