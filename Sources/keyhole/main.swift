import Control
import ImportExport
import Platform
import SecretMemory
import Service

/// Commands for which no process of a mount asks a person or notes an access. No set: its type takes longer to make than this to
/// search.
private let commandsWithoutAccess = [
  "approve", "completions", "deny", "help", "lock", "log", "mount", "requests", "status", "unlock", "unmount",
]

/// Whether a command may open a secret or change how one is protected. The value of a setting is no secret; but the first command
/// after an import that was cut short takes that back.
private func mayNeedAccess(_ arguments: [String], _ folders: UserFolders) -> Bool {
  guard let command = arguments.first, !command.hasPrefix("-"), !commandsWithoutAccess.contains(command)
  else {
    return false
  }
  guard command == "get" && arguments.count == 2 || command == "set" && arguments.count > 1,
    MountedSetting.isPath(arguments[1])
  else { return true }
  return ImportRecovery.isNeeded(state: folders.state)
}

// The program that `run` starts has them.
_ = StartConditions.ofProcess
StandardStream.reserveClosed()
private let arguments = Arguments.ofProcess()

// Rules hold for this program as for every other one, so the processes of the mounts have to see which one it is.
hardenProcess(arguments.first == "run" ? .ofStartedPrograms : .never) {
  guard let folders = UserFolders.current(), mayNeedAccess(arguments, folders) else { return }
  ControlClient.identify(in: folders.runtime, starting: Arguments.executableOfProgram())
}
Signals.ignore([.fileSizeLimit])
KeyholeCommand.run(arguments)
