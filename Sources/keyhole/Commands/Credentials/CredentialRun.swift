import Model
import Platform
import Prompting
import SecretMemory
import Service

/// One call of a helper: the tool's words and standard input to the answer on standard output.
struct CredentialRun {
  /// As much is read of standard input.
  private static let limit = 1 << 20

  private let tool: CredentialTool
  private let words: [String]

  init(_ tool: CredentialTool, _ words: [String]) {
    self.tool = tool
    // Options of the tool's own, which it may put before the action.
    self.words = tool == .askpass ? words : words.filter { !$0.hasPrefix("-") }
  }

  func run() throws {
    switch tool {
    case .git: try write(GitHelper.run(word(0), input()))
    case .docker, .podman: try docker()
    case .cargo: try cargo()
    case .aws: try write(AWSHelper.run(profile: word(0)))
    case .kubectl: try write(KubernetesHelper.run(name: words.first))
    case .terraform: try write(TerraformHelper.run(word(0), host: word(1), input))
    case .bazel: try write(BazelHelper.run(word(0), input()))
    case .askpass: try write(AskpassHelper.run(word(0)))
    case .systemd: try systemd()
    }
  }

  private func word(_ index: Int) throws -> String {
    guard index < words.count else {
      let remedy =
        tool == .askpass
        ? "SSH_ASKPASS=keyhole-askpass has ssh call it"
        : "`keyhole credential install \(tool.rawValue)` has it do so"
      throw UsageError(
        message:
          "`keyhole credential \(tool.rawValue)` is called by \(tool.rawValue) itself, with further words; \(remedy)"
      )
    }
    return words[index]
  }

  private func input() throws -> SecretBytes {
    try SecretInput.read(descriptor: StandardStream.input.number, limit: Self.limit)
  }

  /// Docker shows what is on standard output when a helper fails.
  private func docker() throws {
    do {
      try write(DockerHelper.run(word(0), version: KeyholeCommand.version, input))
    } catch let failure as Failure {
      let subject = failure.subject.map { "\($0): " } ?? ""
      try write(.refusal(subject + failure.reason + "\n"))
    }
  }

  private func cargo() throws {
    StandardOutput.write(CargoHelper.greeting)
    while true {
      let line = try SecretInput.readLine(limit: Self.limit)
      guard !line.isEmpty else { return }
      try write(CargoHelper.run(line))
    }
  }

  private func systemd() throws {
    let helper = try SystemdHelper()
    if let path = helper.path { StandardError.note("credentials are served at \(path)") }
    let idle = try words.first.map { word in
      guard let seconds = UInt16(word) else {
        throw UsageError(message: "systemd takes a number of seconds, not \(word)")
      }
      return Duration.seconds(Int64(seconds))
    }
    try helper.run(idle: idle)
  }

  private func write(_ answer: consuming CredentialAnswer) throws {
    switch consume answer {
    case .none: break
    case .text(let text): StandardOutput.write(text)
    case .secret(let secret): StandardOutput.write(secret.span)
    case .refusal(let text):
      StandardOutput.write(text)
      CurrentProcess.exit(1)
    }
  }
}
