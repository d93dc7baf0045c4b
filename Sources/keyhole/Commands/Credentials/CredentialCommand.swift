import ArgumentParser
import Model
import Platform
import Prompting
import SecretMemory
import Service

/// The command that other programs call to get and store their secrets, each in its own protocol.
struct CredentialCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "credential",
    abstract: "Give other programs their secrets, in the protocols that they have for that.",
    discussion: """
      The tools are git, docker, podman, cargo, aws, kubectl, terraform, bazel, askpass and systemd. They call this \
      command themselves, some by the name of a link to it: git-credential-keyhole, docker-credential-keyhole (podman \
      too), cargo-credential-keyhole, terraform-credentials-keyhole, bazel-credential-keyhole, keyhole-askpass.
        keyhole credential install TOOL…      has a tool call it: writes into its configuration
        keyhole credential uninstall TOOL…    takes exactly that back
        keyhole credential git get|store|erase
        keyhole credential docker|podman get|store|erase|list|version
        keyhole credential aws PROFILE
        keyhole credential kubectl [NAME]
        keyhole credential terraform get|store|forget HOST
        keyhole credential bazel get
        keyhole credential askpass PROMPT
        keyhole credential systemd [SECONDS]  ends after as long without a unit, where systemd has started it (60)

      A tool gets the item of exactly the protocol, host, port and path that it names, and no other. Flags and rules of \
      items hold as for `keyhole get`: the program is keyhole, and a rule for git does not fit it. The question and \
      `keyhole log` name the processes that started the helper. As any program can start a helper, that guards against \
      accidents only.

      With --dry-run, install and uninstall only say what they would do. A file that was changed since is reported and left \
      as it is. Where one of several tools fails, the others are still done, and the exit status is that of the last failure.
      """)

  @Flag(help: "With install and uninstall: print what would be written, and write nothing.")
  var dryRun = false

  @Argument(help: "A tool, or `install` or `uninstall`.", completion: .list(Self.words))
  var tool: String

  @Argument(
    parsing: .allUnrecognized, help: "The words that the tool adds; with install and uninstall, tools.",
    completion: .list(Self.tools))
  var arguments: [String] = []

  private static let tools = CredentialTool.allCases.map(\.rawValue)
  private static let words = ["install", "uninstall"] + tools

  func validate() throws {
    guard Self.words.contains(tool) else {
      let likely = Spelling.nearest(to: tool, among: Self.words).map { "did you mean `\($0)`?" }
      let hint = likely ?? "they are \(Self.words.joined(separator: ", "))"
      throw ValidationError("there is no tool `\(tool)`; \(hint)")
    }
    if dryRun, CredentialTool(rawValue: tool) != nil {
      throw ValidationError("--dry-run goes with install and uninstall")
    }
  }

  func run() throws {
    allowUnlockedMemoryWithoutSwap()
    guard let tool = CredentialTool(rawValue: tool) else { return try configure() }
    try CredentialRun(tool, arguments).run()
  }

  private func configure() throws {
    guard !arguments.isEmpty else {
      throw UsageError(message: "which tools? \(Self.tools.joined(separator: ", "))")
    }
    // Each tool by itself: the last failure is reported as that of the command, the ones before it here.
    var failure: Failure?
    for name in arguments {
      do { try configure(name) } catch let next as Failure {
        failure?.report()
        failure = next
      }
    }
    if let failure { throw failure }
  }

  private func configure(_ name: String) throws {
    let installation = try CredentialInstallation(name)
    let lines =
      tool == "install"
      ? try installation.install(isDry: dryRun) : try installation.uninstall(isDry: dryRun)
    StandardOutput.write(lines.forStandardOutputLines)
  }
}

extension String {
  /// Lines for people, each escaped where a terminal shows it.
  fileprivate var forStandardOutputLines: String {
    split(separator: "\n", omittingEmptySubsequences: false).map { String($0).forStandardOutput }
      .joined(separator: "\n")
  }
}
