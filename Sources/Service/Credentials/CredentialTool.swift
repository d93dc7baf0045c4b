import Model
import Platform
import Store

/// A program whose credential helper `keyhole credential` is.
package enum CredentialTool: String, CaseIterable, Sendable {
  case git
  case docker
  case podman
  case cargo
  case aws
  case kubectl
  case terraform
  case bazel
  case askpass
  case systemd

  /// The tool that calls a helper by this name; nil: none does.
  package init?(helper name: String) {
    guard let word = CredentialHelper.tool(helper: name) else { return nil }
    self.init(rawValue: word)
  }

  /// The names that helpers are called by: links to the command.
  package static var helperNames: [String] { CredentialHelper.tools.map(\.name).sorted() }
}

// MARK: Configuration

extension CredentialTool {
  /// The changes of files that have the tool call Keyhole.
  ///
  /// - Parameter detail: of `aws` the profile.
  /// - Returns: the changes in their order.
  /// - Throws: `Failure` with what to do by hand where that can't be done without touching what is there.
  func steps(_ detail: String?) throws -> [ConfigurationStep] {
    guard let home = environment("HOME"), home.hasPrefix("/") else { throw Failure(nil, "set HOME") }
    let configuration = Environment.absolutePath("XDG_CONFIG_HOME") ?? home + "/.config"
    switch self {
    case .git: return try [append(Self.gitLines(), to: Self.gitFile(home, configuration))]
    case .docker: return try [docker(home)]
    case .podman:
      _ = try Self.helper("docker-credential-keyhole")
      // It looks below the home folder, whatever XDG_CONFIG_HOME is.
      let text = "credential-helpers = [\"keyhole\", \"containers-auth.json\"]\n"
      return [
        ConfigurationStep(
          path: home + "/.config/containers/registries.conf.d/keyhole.conf", change: .file(text),
          isNewFile: true)
      ]
    case .cargo: return try [cargo(home)]
    case .aws: return try [aws(home, profile: detail)]
    case .terraform: return try terraform(home)
    case .bazel:
      let helper = try Self.helper("bazel-credential-keyhole")
      return try [append("build --credential_helper=\(helper)\n", to: home + "/.bazelrc")]
    case .askpass:
      let helper = try Self.helper("keyhole-askpass")
      return [
        ConfigurationStep(
          path: configuration + "/environment.d/60-keyhole-askpass.conf",
          change: .file("SSH_ASKPASS=\(helper)\nSUDO_ASKPASS=\(helper)\n"), isNewFile: true)
      ]
    case .kubectl: return try [kubectl(home)]
    case .systemd: return try systemd(configuration)
    }
  }

  /// The command by its path, as other programs shall call it.
  static func command() throws -> String {
    if let found = try? find("keyhole") { return found }
    do throws(Errno) { return try plain(Files.target(ofLink: "/proc/self/exe")) } catch {
      throw Failure(nil, "the path of this program can't be read: \(error)")
    }
  }

  /// - Throws: `Failure` where no such name is in PATH.
  private static func helper(_ name: String) throws -> String {
    do { return try find(name) } catch {
      throw Failure(
        name, "it is not in PATH; make it a link: ln -s \(try command().quotedForShell) FOLDER/\(name)")
    }
  }

  private static func find(_ name: String) throws -> String {
    let folders = (environment("PATH") ?? "").split(separator: ":").filter { $0.hasPrefix("/") }
    let paths = folders.map { "\($0)/\(name)" }
    guard let path = paths.first(where: { plain($0) == $0 && Files.allows(.execute, $0) }) else {
      throw Failure(name, "it is not in PATH")
    }
    return path
  }

  /// A path that needs no quotes in any of the files.
  private static func plain(_ path: String) -> String {
    let isPlain = path.utf8.allSatisfy { byte in
      (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
        || "/._-+".utf8.contains(byte)
    }
    return isPlain ? path : "keyhole"
  }

  /// The text at the end of a file, on a line of its own.
  func append(_ text: String, to path: String) throws -> ConfigurationStep {
    let present = try ConfigurationFile.read(path)
    let isOpen = present?.last.map { $0 != 0x0A } ?? false
    return ConfigurationStep(
      path: path, change: .append((isOpen ? "\n" : "") + text), isNewFile: present == nil)
  }

  private static func gitFile(_ home: String, _ configuration: String) -> String {
    if let file = Environment.absolutePath("GIT_CONFIG_GLOBAL") { return file }
    let (own, common) = (home + "/.gitconfig", configuration + "/git/config")
    return !Files.exists(own) && Files.exists(common) ? common : own
  }

  private static func gitLines() throws -> String {
    // An editor may start git with a PATH of its own, which has these folders only.
    let name = "git-credential-keyhole"
    if ["/usr/bin/", "/usr/local/bin/"].contains(where: { Files.allows(.execute, $0 + name) }) {
      return "[credential]\n\thelper = keyhole\n"
    }
    if let path = try? find(name) { return "[credential]\n\thelper = \(path)\n" }
    return "[credential]\n\thelper = \(try command()) credential git\n"
  }

  private func docker(_ home: String) throws -> ConfigurationStep {
    _ = try Self.helper("docker-credential-keyhole")
    let folder = Environment.absolutePath("DOCKER_CONFIG") ?? home + "/.docker"
    let path = folder + "/config.json"
    let present = try ConfigurationFile.read(path)
    if let present, present.allSatisfy({ [0x20, 0x09, 0x0A, 0x0D].contains($0) }) {
      throw Failure(path, "it is empty, which is no JSON; remove it, and the same command makes it")
    }
    if let present, let other = try JSONMember("credsStore").text(in: present, path) {
      guard other != "keyhole" else {
        throw Failure(
          path,
          "docker calls Keyhole already, by a `credsStore` that this command has not written; nothing was changed"
        )
      }
      guard !other.isEmpty else {
        throw Failure(path, "it has an empty `credsStore`; take that out, then the same command again")
      }
      throw Failure(
        path,
        "docker keeps its credentials with `\(other)`; for one registry only, add to it by hand: "
          + "\"credHelpers\": {\"REGISTRY\": \"keyhole\"}")
    }
    return ConfigurationStep(
      path: path, change: .member("credsStore", value: "keyhole"), isNewFile: present == nil)
  }

  private func cargo(_ home: String) throws -> ConfigurationStep {
    let helper = try Self.helper("cargo-credential-keyhole")
    let path = (Environment.absolutePath("CARGO_HOME") ?? home + "/.cargo") + "/config.toml"
    let line = "global-credential-providers = [\"cargo:token\", \(helper.quotedAsJSON)]\n"
    try requireAbsent("[registry]", orTable: "registry", in: path, line)
    return try append("[registry]\n" + line, to: path)
  }

  private func aws(_ home: String, profile: String?) throws -> ConfigurationStep {
    guard let profile,
      profile.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"[]'\"\\$`;&|<>(){}*?!#~".utf8.contains($0) }),
      !profile.isEmpty
    else { throw Failure("aws", "which profile? `keyhole credential install aws:PROFILE`") }
    let path = Environment.absolutePath("AWS_CONFIG_FILE") ?? home + "/.aws/config"
    let section = profile == "default" ? "[default]" : "[profile \(profile)]"
    let line = "credential_process = \(try Self.command()) credential aws \(profile)\n"
    try requireAbsent(section, in: path, line)
    return try append("\(section)\n\(line)", to: path)
  }

  private func terraform(_ home: String) throws -> [ConfigurationStep] {
    let path = Environment.absolutePath("TF_CLI_CONFIG_FILE") ?? home + "/.terraformrc"
    try requireAbsent("credentials_helper", in: path, "credentials_helper \"keyhole\" {}\n")
    return try [
      ConfigurationStep(
        path: home + "/.terraform.d/plugins/terraform-credentials-keyhole", change: .link(Self.command())),
      append("credentials_helper \"keyhole\" {\n}\n", to: path),
    ]
  }

  /// A second section of the name would be an error, or take the place of the first one. `table`: of TOML, which may be written in
  /// the lines before the first section too.
  private func requireAbsent(
    _ section: String, orTable table: String? = nil, in path: String, _ line: String
  ) throws {
    guard let present = try ConfigurationFile.read(path) else { return }
    // Blanks and quotes are as the writer likes them.
    func plain(_ text: some Sequence<UInt8>) -> [UInt8] {
      text.filter { ![0x20, 0x09, 0x0D, UInt8(ascii: "\""), UInt8(ascii: "'")].contains($0) }
    }
    let lines = present.split(separator: 0x0A).map(plain)
    let isThere = lines.contains { $0.starts(with: plain(section.utf8)) }
    let isTable = lines.prefix { $0.first != UInt8(ascii: "[") }.contains { line in
      table.map { line.starts(with: "\($0)=".utf8) || line.starts(with: "\($0).".utf8) } ?? false
    }
    guard isThere || isTable else { return }
    throw Failure(path, "it has `\(section)` already; add there by hand: \(line.dropLast())")
  }
}
