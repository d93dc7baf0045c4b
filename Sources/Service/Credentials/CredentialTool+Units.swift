import Model
import Platform

// The tools whose configuration is more than a line: kubectl's file of YAML, and units of systemd.

extension CredentialTool {
  /// The steps that are left to the person; nil: none.
  var nextSteps: String? {
    switch self {
    case .kubectl: "then: kubectl config set-context CONTEXT --user=keyhole\n"
    case .systemd:
      "then: systemctl --user daemon-reload && systemctl --user start keyhole-credentials.socket\n"
    default: nil
    }
  }

  /// A user as `kubectl config` writes one, so that the text stays the same when that writes the file again.
  private static func user(_ indentation: String) throws -> String {
    let lines = try """
    - name: keyhole
      user:
        exec:
          apiVersion: client.authentication.k8s.io/v1
          args:
          - credential
          - kubectl
          command: \(command())
          env: null
          interactiveMode: IfAvailable
          provideClusterInfo: true

    """
    return lines.split(separator: "\n").map { "\(indentation)\($0)\n" }.joined()
  }

  /// One user, which takes the token of the item that is called as the server of the context.
  func kubectl(_ home: String) throws -> ConfigurationStep {
    let first = Environment.value("KUBECONFIG")?.split(separator: ":").first.map(String.init)
    let path = first ?? home + "/.kube/config"
    guard path.hasPrefix("/") else { throw Failure(path, "KUBECONFIG has to name an absolute path") }
    guard let present = try ConfigurationFile.read(path) else {
      let text = try "apiVersion: v1\nkind: Config\nusers:\n" + Self.user("")
      return ConfigurationStep(path: path, change: .file(text), isNewFile: true)
    }
    let lines = present.split(separator: 0x0A, omittingEmptySubsequences: false).map {
      String(decoding: $0, as: UTF8.self).trimmingEnd
    }
    // A message is one line, in which YAML has the form that JSON has.
    func byHand(_ reason: String) throws -> Failure {
      let call =
        "apiVersion: client.authentication.k8s.io/v1, command: \(try Self.command()), args: [credential, kubectl], "
        + "interactiveMode: IfAvailable, provideClusterInfo: true"
      return Failure(path, "\(reason); add to its users by hand: - {name: keyhole, user: {exec: {\(call)}}}")
    }
    guard
      !lines.contains(where: { $0.trimmingStart == "- name: keyhole" || $0.trimmingStart == "name: keyhole" })
    else { throw try byHand("it has a user `keyhole` already") }
    // As kubectl writes a file without users. The last line has no line feed behind it.
    let whole = present.split(separator: 0x0A, omittingEmptySubsequences: false).dropLast()
    if let empty = ["users: null", "users: []"].first(where: { whole.contains(ArraySlice($0.utf8)) }) {
      return try ConfigurationStep(
        path: path, change: .replace("users:\n" + Self.user(""), line: empty))
    }
    guard let place = lines.firstIndex(of: "users:") else {
      guard !lines.contains(where: { $0.hasPrefix("users:") }), lines.contains("apiVersion: v1") else {
        throw try byHand("it is not written as `kubectl config` does")
      }
      return try append("users:\n" + Self.user(""), to: path)
    }
    let next = lines[(place + 1)...].first { !$0.isEmpty && !$0.trimmingStart.hasPrefix("#") } ?? ""
    guard next.trimmingStart.hasPrefix("- "), place + 1 < lines.count else {
      throw try byHand("its users are not written as `kubectl config` does")
    }
    let indentation = String(next.prefix { $0 == " " })
    return try ConfigurationStep(path: path, change: .insert(Self.user(indentation), after: "users:"))
  }

  func systemd(_ configuration: String) throws -> [ConfigurationStep] {
    let name = "keyhole-credentials"
    let folder = configuration + "/systemd/user"
    let system = ["/etc", "/usr/local/lib", "/usr/lib"].map { "\($0)/systemd/user/\(name).socket" }
      .first(where: Files.exists)
    let link = ConfigurationStep(
      path: "\(folder)/sockets.target.wants/\(name).socket",
      change: .link(system ?? "\(folder)/\(name).socket"))
    if system != nil { return [link] }
    let head = "[Unit]\nDescription=Credentials of units from Keyhole\n"
    let socket = """
      \(head)
      [Socket]
      ListenStream=%t/keyhole/credentials
      SocketMode=0600
      DirectoryMode=0700
      RemoveOnStop=yes

      [Install]
      WantedBy=sockets.target

      """
    let service = try """
    \(head)Requires=\(name).socket

    [Service]
    ExecStart=\(Self.command()) credential systemd
    UMask=0077
    LimitCORE=0
    Environment=SWIFT_BACKTRACE=enable=no

    """
    return [
      ConfigurationStep(path: "\(folder)/\(name).socket", change: .file(socket), isNewFile: true),
      ConfigurationStep(path: "\(folder)/\(name).service", change: .file(service), isNewFile: true), link,
    ]
  }
}
