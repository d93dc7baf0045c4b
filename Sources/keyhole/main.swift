import Control
import Platform
import SecretMemory

/// Commands that may open secrets. No set: its type takes longer to make than this to search.
private let commandsWithSecrets = [
  "attr", "backup", "clip", "cp", "credential", "edit", "export", "generate", "get", "import", "migrate",
  "mv",
  "otp", "passphrase", "restore", "run", "set",
]

// The program that `run` starts has them.
_ = StartConditions.ofProcess
private let arguments = Arguments.ofProcess()

// Rules hold for this program as for every other one, so the processes of the mounts have to see which one it is.
hardenProcess(arguments.first == "run" ? .ofStartedPrograms : .never) {
  guard let command = arguments.first, commandsWithSecrets.contains(command),
    let folders = UserFolders.current()
  else { return }
  ControlClient.identify(in: folders.runtime, starting: Arguments.executableOfProgram())
}
Signals.ignore([.fileSizeLimit])
KeyholeCommand.run(arguments)
