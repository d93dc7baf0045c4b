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

  /// Recorded from the documents of kubernetes.io, developer.hashicorp.com and EngFlow's specification.
  @Test func kubectlTerraformAndBazelGetTheirTokens() async throws {
    try await withWorld { world in
      try world.checkHelpers(
        #"""
        printf k8s | keyhole set keychain/generic/kubernetes/prod
        export KUBERNETES_EXEC_INFO='{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false}}'
        keyhole credential kubectl prod; keyhole credential kubectl; echo $?
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
