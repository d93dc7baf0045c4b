import ArgumentParser
import Model
import Platform
import Prompting
import SecretMemory
import Service

/// `keyhole`: settings and secrets as files, with a mount or without.
struct KeyholeCommand: ParsableCommand {
  static let version = "0.1.0"

  static let configuration = CommandConfiguration(
    commandName: "keyhole",
    abstract: "Settings and secrets as files.",
    discussion: """
      The paths that commands take are those of the tree:
        defaults/SUITE/KEY                            a setting
        keychain/generic/SERVICE/ACCOUNT/value        a secret
        keychain/generic/SERVICE/ACCOUNT/otpauth      its otpauth:// URI, for one-time codes
        keychain/generic/SERVICE/ACCOUNT/otp          the one-time code, if it has that URI
        keychain/internet/SERVER/ACCOUNT/value        a secret of a server
      They work with a mount and without.

      Exit codes: 0 done, 1 failed, 2 wrong usage.
      """,
    version: Self.version,
    subcommands: [
      MountCommand.self, UnmountCommand.self, StatusCommand.self, ListCommand.self, GetCommand.self,
      SetCommand.self, OneTimeCodeCommand.self, RemoveCommand.self, AttributeCommand.self, EditCommand.self,
      ExportCommand.self,
      ImportCommand.self, BackupCommand.self, RestoreCommand.self, MigrateCommand.self, UpgradeCommand.self,
      AcceptCommand.self,
      DoctorCommand.self,
      LockCommand.self, UnlockCommand.self, PassphraseCommand.self, AuthenticateCommand.self,
      CompletionsCommand.self,
      RequestsCommand.self, ApproveCommand.self, DenyCommand.self, AllowCommand.self, RulesCommand.self,
      WatchCommand.self, LogCommand.self, ReplayCommand.self,
    ])

  /// Parses and runs, and ends the process with the exit code of SPECIFICATION.md, section 10.
  static func run(_ arguments: [String]) -> Never {
    do {
      if let path = pathOfPlainGet(arguments) {
        try GetCommand.print(path)
      } else {
        var command = try parseAsRoot(arguments)
        try command.run()
      }
      CurrentProcess.exit(0)
    } catch let failure as Failure {
      failure.report()
      CurrentProcess.exit(1)
    } catch is SecretMemoryError {
      Failure(nil, "there is not enough locked memory for secrets; `ulimit -l` sets the limit, in KiB")
        .report()
      CurrentProcess.exit(1)
    } catch {
      end(with: error)
    }
  }

  /// The path of `get PATH`; nil: it is another command, or has options. Scripts call it often, and ArgumentParser takes
  /// longer than all the rest of it.
  private static func pathOfPlainGet(_ arguments: [String]) -> String? {
    guard arguments.count == 2, arguments[0] == "get", arguments[1].utf8.first != UInt8(ascii: "-") else {
      return nil
    }
    return arguments[1]
  }

  private static func end(with error: any Error) -> Never {
    guard exitCode(for: error) != .success else { exit(withError: error) }
    let usage = error as? UsageError
    let reason = usage?.message ?? message(for: error)
    let line = reason.split(separator: "\n").joined(separator: " ")
    StandardError.write("keyhole: \(line.escapedForTerminal)\n")
    CurrentProcess.exit(2)
  }
}
