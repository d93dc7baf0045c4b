import Testing

@testable import Service

/// The user `keyhole` of a kubeconfig, as kubectl writes it again: the texts are those of kubectl 1.32.
@Suite struct KubernetesUserTests {
  private static let user = """
    - name: keyhole
      user:
        exec:
          apiVersion: client.authentication.k8s.io/v1
          args:
          - credential
          - kubectl
          command: /usr/bin/keyhole
          env: null
          interactiveMode: IfAvailable
          provideClusterInfo: true

    """

  private static let others = """
    apiVersion: v1
    clusters:
    - cluster:
        server: https://x:6443
      name: c
    contexts:
    - context:
        cluster: c
        user: keyhole
      name: keyhole
    current-context: ""
    kind: Config
    preferences: {}
    users:

    """

  private static let anna = "- name: anna\n  user:\n    token: x\n"
  private static let zoe = "- name: zoe\n  user:\n    exec:\n      command: keyhole\n"

  /// The texts that `install` writes: a file, the end of one, and lines of one, with or without indentation.
  private static let changes: [ConfigurationStep.Change] = [
    .file("apiVersion: v1\nkind: Config\nusers:\n" + user), .append("users:\n" + user),
    .insert(user, after: "users:"),
    .insert(user.split(separator: "\n").map { "  \($0)\n" }.joined(), after: "users:"),
    .replace("users:\n" + user, line: "users: null"),
  ]

  private func reverted(
    _ change: ConfigurationStep.Change, _ text: String
  ) throws -> (outcome: ConfigurationStep.Outcome, text: String?) {
    let folder = try TemporaryFolder()
    let step = ConfigurationStep(path: folder.path + "/config", change: change)
    try ConfigurationFile.write(Array(text.utf8), to: step.path)
    let outcome = try step.revert()
    return (outcome, try ConfigurationFile.read(step.path).map { String(decoding: $0, as: UTF8.self) })
  }

  @Test(arguments: changes)
  func isTakenOutOfWhatKubectlWrote(_ change: ConfigurationStep.Change) throws {
    let (user, others, anna, zoe) = (Self.user, Self.others, Self.anna, Self.zoe)
    for (before, behind) in [(anna, zoe), (anna, ""), ("", zoe)] {
      let result = try reverted(change, others + before + user + behind)
      #expect(result.outcome == .done && result.text == others + before + behind)
    }
    // Other versions have further lines that say nothing.
    let longer = user.replacing("      env: null\n", with: "      env: null\n      installHint: \"\"\n")
    #expect(try reverted(change, others + anna + longer).text == others + anna)
    let alone = try reverted(change, others + user)
    let empty = if case .replace(_, let line) = change { line } else { "users: []" }
    if case .append = change {
      #expect(alone.text == others.replacing("users:\n", with: ""))
    } else {
      #expect(alone.outcome == .done && alone.text == others.replacing("users:", with: empty))
    }
    let followed = try reverted(change, others + user + "zone: x\n")
    #expect(followed.text == others.replacing("users:", with: empty) + "zone: x\n")
  }

  @Test(arguments: changes)
  func aChangedUserStays(_ change: ConfigurationStep.Change) throws {
    let (user, others, anna) = (Self.user, Self.others, Self.anna)
    for line in ["      installHint: get it\n", "      - name: X\n        value: y\n", "    token: x\n"] {
      let result = try reverted(change, others + user + line + anna)
      #expect(result.outcome == .changed && result.text == others + user + line + anna)
    }
    #expect(try reverted(change, others + user.replacing("/usr/bin", with: "/opt")).outcome == .changed)
    #expect(try reverted(change, others + anna).outcome == .missing)
    #expect(try reverted(change, others.replacing("users:", with: "users: null")).outcome == .missing)
  }

  @Test func aFileAsItWasIsRemoved() throws {
    #expect(try reverted(Self.changes[0], "apiVersion: v1\nkind: Config\nusers:\n" + Self.user).text == nil)
  }
}
