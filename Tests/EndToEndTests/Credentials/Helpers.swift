import Testing

extension World {
  /// The lead of a script: the names by which tools call their helpers are in PATH, and git reads the test's files only.
  static let helpers = """
    mkdir -p "$OUT/bin"
    for name in git-credential-keyhole docker-credential-keyhole cargo-credential-keyhole terraform-credentials-keyhole \
      bazel-credential-keyhole keyhole-askpass; do ln -sf '\(Products.keyhole)' "$OUT/bin/$name"; done
    export PATH="$OUT/bin:$PATH" GIT_CONFIG_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0

    """

  /// Runs a script with the helpers in PATH, and checks what it prints on both streams together.
  func checkHelpers(
    _ script: String, prints text: String, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let output = try sh("exec 2>&1\n" + Self.helpers + script, within: .seconds(60))
    #expect(output.text == text, "\(script)", sourceLocation: sourceLocation)
  }

  /// Puts a server written in Python beside the script; `start_server` runs it, and sets `$port` when it listens.
  func addServer(_ program: String) throws {
    try check("cat > \"$OUT/server.py\"", sending: Array(program.utf8))
  }

  /// Functions for the server of `addServer`, which ends with the script.
  static let server = """
    start_server() {
      rm -f "$OUT/ready"; mkfifo "$OUT/ready"; python3 "$OUT/server.py" "$@" > "$OUT/ready" & server=$!
      trap 'kill $server' EXIT
      read -r port < "$OUT/ready"
    }

    """
}
