import ArgumentParser
import Prompting
import Service

struct ServiceCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "service", abstract: "Serve the vault on the session bus, as the Secret Service.",
    discussion: """
      Programs that look for a keyring (org.freedesktop.secrets, by libsecret and others) find the vault: git, docker, VS Code,
      browsers, Python's keyring. The items are those of `keychain`, with their flags, rules and record. A process in the
      background serves until it is ended; `keyhole mount --service` does the same beside a mount.

      It steps aside where another program is the Secret Service, and says which one and how it is stopped. `keyhole migrate`
      brings the items of that one over first.
      """)

  @Flag(
    help: "Have the session bus start it whenever a program asks: writes a user unit and a file for the bus.")
  var enable = false

  @Flag(
    help:
      "Remove what --enable has written, folders that it made too. A service that runs goes on, and is named."
  )
  var disable = false

  @Flag(help: "Take the place of the present Secret Service, if that lets itself be replaced.")
  var replace = false

  @Flag(help: "Serve in this process, until a signal ends it.")
  var foreground = false

  /// Where the background process says that it is ready, or why not.
  @Option(help: .hidden)
  var readyDescriptor: Int32?

  @OptionGroup var quiet: QuietOption

  func validate() throws {
    if enable || disable, enable == disable || replace || foreground {
      throw ValidationError("--enable and --disable go alone")
    }
  }

  func run() throws {
    quiet.apply()
    if enable {
      let activation = try SecretServiceActivation()
      print(try activation.enable(), "wrote")
      if let note = activation.note { StandardError.note(note) }
      if let present = try SecretServiceActivation.present() { StandardError.note(present) }
      return
    }
    if disable {
      let disabled = try SecretServiceActivation().disable()
      print(disabled.removed, "removed")
      print(disabled.left, "another program's file is left:")
      if let running = try SecretServiceActivation.running() { StandardError.note(running) }
      return
    }
    guard foreground else {
      return try Daemon.start(["service", "--foreground"] + (replace ? ["--replace"] : []))
    }
    EndSignals.hold()
    try Daemon.reporting(to: readyDescriptor) { ready in
      try KeychainService(
        StoragePaths.current(), version: KeyholeCommand.version, replaces: replace
      ).serve(ready)
    }
  }

  private func print(_ paths: [String], _ verb: String) {
    for path in paths { StandardError.note("\(verb) \(path)") }
  }
}
