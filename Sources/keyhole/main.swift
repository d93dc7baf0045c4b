import Control
import ImportExport
import Platform
import SecretMemory
import Service

/// Commands that may open secrets. No set: its type takes longer to make than this to search.
private let commandsWithSecrets = [
  "attr", "backup", "clip", "cp", "credential", "edit", "export", "generate", "get", "import", "migrate",
  "mv",
  "otp", "passphrase", "restore", "run", "set",
]

/// Whether a command may open a secret. The value of a setting is none; but the first command after an import that was cut
/// short takes that back.
private func mayOpenSecrets(_ arguments: [String], _ folders: UserFolders) -> Bool {
  guard let command = arguments.first, commandsWithSecrets.contains(command) else { return false }
  guard command == "get", arguments.count == 2, MountedSetting.isPath(arguments[1]) else { return true }
  return ImportRecovery.isNeeded(state: folders.state)
}

// The program that `run` starts has them.
_ = StartConditions.ofProcess
private let arguments = Arguments.ofProcess()

// Rules hold for this program as for every other one, so the processes of the mounts have to see which one it is.
hardenProcess(arguments.first == "run" ? .ofStartedPrograms : .never) {
  guard let folders = UserFolders.current(), mayOpenSecrets(arguments, folders) else { return }
  ControlClient.identify(in: folders.runtime, starting: Arguments.executableOfProgram())
}
Signals.ignore([.fileSizeLimit])
KeyholeCommand.run(arguments)
