import Testing

/// The helpers that give one token: the AWS SDK for Python itself, and the words of cargo, kubectl, Terraform and Bazel as their
/// documents have them.
@Suite(.timeLimit(.minutes(5))) struct TokenCredentialTests {
  @Test func awsSDKRunsTheProcess() async throws {
    try await withWorld { world in
      try world.checkHelpers(
        """
        printf 'aws_access_key_id = AK\\naws_secret_access_key = S/+=\\n' | keyhole set keychain/generic/aws/work
        keyhole credential install aws:work > /dev/null
        python3 -c '
        import botocore.session
        session = botocore.session.Session(profile="work")
        credentials = session.get_credentials()
        print(credentials.method, credentials.access_key, credentials.secret_key, credentials.token)'
        keyhole credential aws other; echo $?
        """.replacing("python3 -c", with: "AWS_EC2_METADATA_DISABLED=true python3 -c"),
        prints: """
          custom-process AK S/+= None
          keyhole: keychain/generic/aws/other: there is no such item; `keyhole set keychain/generic/aws/other` stores the two lines of the access key
          3

          """)
    }
  }

  /// Recorded from the Cargo book: no cargo of Debian 12 speaks it.
  @Test func cargoLogsInGetsAndLogsOut() async throws {
    try await withWorld { world in
      try world.checkHelpers(
        #"""
        say() { printf '{"v":1,"registry":{"index-url":"%s"},"kind":"%s"%s,"args":[]}\n' "$1" "$2" "$3"; }
        { say sparse+https://a.example/ get; say sparse+https://a.example/ login ',"token":"t"'
          say sparse+https://a.example/ get; say sparse+https://a.example/b get; say sparse+http://a.example/ get
          say sparse+https://a.example/ future; say sparse+https://a.example/ logout; say sparse+https://a.example/ logout
        } | cargo-credential-keyhole --cargo-plugin; echo $?
        """#,
        prints: #"""
          {"v":[1]}
          {"Err":{"kind":"not-found"}}
          {"Ok":{"kind":"login"}}
          {"Ok":{"kind":"get","token":"t","cache":"session","operation_independent":true}}
          {"Err":{"kind":"not-found"}}
          {"Err":{"kind":"url-not-supported"}}
          {"Err":{"kind":"operation-not-supported"}}
          {"Ok":{"kind":"logout"}}
          {"Err":{"kind":"not-found"}}
          0

          """#)
    }
  }

  /// `cargo login` without a token: cargo sends none, its messages come on standard input, and a person types it on the terminal.
  @Test func cargoLoginAsksOnTheTerminal() async throws {
    try await withWorld { world in
      let login = #"{"v":1,"registry":{"index-url":"sparse+https://a.example/"},"kind":"login","args":[]}"#
      try world.check("cat > \"$OUT/login\"", sending: Array((login + "\n").utf8))
      try world.check(
        "keyhole credential cargo < login 2>&1 | grep -c '\"Err\":{\"kind\":\"other\"'; keyhole ls keychain/generic",
        prints: "1\n")
      let terminal = try Terminal(
        ["/bin/sh", "-c", "keyhole credential cargo < login > said; echo done"],
        environment: world.environment,
        directory: world.outside, errors: world.outside + "/errors")
      try terminal.wait(for: "Token for sparse+https://a.example/: ")
      try terminal.type("tok123\r")
      try terminal.wait(for: "done")
      _ = try terminal.finish()
      try world.check(
        "tail -n 1 said; keyhole get 'keychain/generic/org.rust-lang.cargo.registry/sparse+https:%2F%2Fa.example%2F'",
        prints: "{\"Ok\":{\"kind\":\"login\"}}\ntok123")
    }
  }

  /// On a socket of the service manager's the helper ends when no unit has asked for the time of its argument.
  @Test(.enabled(if: System.exists("/usr/bin/systemd-socket-activate"), "needs systemd"))
  func systemdHelperEndsWithoutUnits() async throws {
    try await withWorld { world in
      try world.check(
        #"""
        printf hunter2 | keyhole set keychain/generic/systemd/app.service:token
        systemd-socket-activate -E HOME -E XDG_RUNTIME_DIR -E XDG_CONFIG_HOME -E XDG_DATA_HOME -E XDG_STATE_HOME \
          -l "$OUT/s" "$(command -v keyhole)" credential systemd 1 2> errors & helper=$!
        until [ -S "$OUT/s" ]; do :; done
        python3 -c 'import socket, os, sys
        for unit in ["app.service/token"] * 2:
            s = socket.socket(socket.AF_UNIX); s.bind("\0%s/unit/%s" % (os.urandom(8).hex(), unit)); s.connect("s")
            print(b"".join(iter(lambda: s.recv(65536), b"")).decode())'
        wait $helper; echo "ended $?"
        """#, prints: "hunter2\nhunter2\nended 0\n", within: .seconds(30))
    }
  }

  /// Recorded from the documents of kubernetes.io, developer.hashicorp.com and EngFlow's specification.
  @Test func kubectlTerraformAndBazelGetTheirTokens() async throws {
    try await withWorld { world in
      try world.checkHelpers(
        #"""
        printf k8s | keyhole set keychain/generic/kubernetes/prod
        export KUBERNETES_EXEC_INFO='{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false}}'
        keyhole credential kubectl prod; keyhole credential kubectl; echo $?; env -u KUBERNETES_EXEC_INFO keyhole credential kubectl prod; echo $?
        printf '{"token":"t"}' | terraform-credentials-keyhole --host=x store app.example; terraform-credentials-keyhole get app.example
        terraform-credentials-keyhole get other.example; terraform-credentials-keyhole forget app.example
        terraform-credentials-keyhole forget app.example; terraform-credentials-keyhole get app.example
        printf '{"token":"t","future":1}' | terraform-credentials-keyhole store app.example; echo $?
        printf token | keyhole set 'keychain/generic/bazel/https:%2F%2Fa.example'
        for uri in https://a.example/x http://a.example/x https://a.example:8443/; do
          printf '{"uri":"%s"}' $uri | bazel-credential-keyhole get
        done
        """#,
        prints: #"""
          {"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"k8s"}}
          keyhole: kubectl: it does not tell the server: set `provideClusterInfo: true` in the kubeconfig, or give a name as an argument
          1
          keyhole: kubectl: KUBERNETES_EXEC_INFO is not set: kubectl sets it when it runs this command for a user of the kubeconfig; `keyhole credential install kubectl` adds one
          1
          {"token":"t"}
          {}
          {}
          keyhole: terraform: only a token can be stored, and `future` is there too
          1
          {"headers":{"Authorization":["Bearer token"]}}
          {"headers":{}}
          {"headers":{}}

          """#)
    }
  }
}
