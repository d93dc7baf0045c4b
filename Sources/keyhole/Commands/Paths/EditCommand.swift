import ArgumentParser
import Model
import Prompting
import Service

struct EditCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "edit", abstract: "Edit a setting or a secret, and leave nothing of it on the disk.",
    discussion: """
      Starts $VISUAL, else $EDITOR, else vi on a copy in locked memory, and stores it when the editor has \
      ended well; a key or an item that is not there is made. vim, nvim, nano, emacs, joe and micro get the \
      options that keep swap, undo, backups and history from the disk; for other editors TMPDIR is a folder in \
      that memory. One that returns at once needs an option to wait, as in EDITOR='code --wait'.

      Only the editor and what it starts can open the copy, not other programs of the user: an editor that hands its \
      file to a process that runs already (emacsclient, or code where a window of it is open) can't be used.

      Where the editor fails or changes nothing, the value stays as it is. When the keychain or the session is \
      locked meanwhile, or the machine goes to sleep, the copy of a secret is wiped: the editor can't save any more, and nothing is stored. So it is when the command gets \
      SIGTERM or SIGHUP.
      """)

  @Argument(
    help: "A key, an item or its otpauth file, such as keychain/generic/my.service/peter.",
    completion: .treePath)
  var path: String

  func run() throws {
    EndSignals.hold()
    let opened = try OpenedPath(path, .items)
    let (path, session) = (opened.path.ofValue, opened.session)
    if path.isOtpauth { try session.requireStored(path) }
    try Edit(path, session, EditorProgram.chosen(), TerminalDialog()).run()
  }
}

private struct TerminalDialog: EditDialog {
  func report(_ failure: Failure) {
    failure.report()
  }

  func editsAgain(after failure: Failure) -> Bool? {
    guard SecretInput.isTyped else { return nil }
    failure.report()
    // Another line, as one that was typed ahead, is no answer: it would lose the text.
    while true {
      StandardError.write("Edit again? (y/n) ")
      switch readLine()?.lowercased() {
      case "y"?, "yes"?: return true
      case "n"?, "no"?, nil: return false
      default: continue
      }
    }
  }
}
