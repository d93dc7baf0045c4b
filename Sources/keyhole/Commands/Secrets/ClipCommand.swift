import ArgumentParser
import Model
import Platform
import Prompting
import SecretMemory
import Service
import Tree

struct ClipCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "clip", abstract: "Copy a secret to the clipboard, and take it away after a time.",
    discussion: """
      It needs wl-copy on Wayland, xclip or xsel on X11. The clipboard is emptied only if it still holds the secret. \
      While it does, every program of the session can read it, and a manager of clipboards may keep it: where wl-copy \
      can, the secret is marked for them as a password.

      --osc52 sends it to the terminal's own clipboard instead, also through ssh. What the terminal does with it can't \
      be seen, and it is not taken away.
      """)

  @Option(name: .shortAndLong, help: "How long it stays, in seconds; 0: until something else is copied.")
  var seconds = 45

  @Flag(name: .customLong("osc52"), help: "Use the terminal's clipboard (the escape sequence OSC 52).")
  var usesTerminal = false

  @OptionGroup var quiet: QuietOption

  @Argument(
    help: "An item or a key: a path of the tree or of a mount, or SERVICE/ACCOUNT.", completion: .treePath)
  var path: String

  func validate() throws {
    guard (0...86_400).contains(seconds) else { throw ValidationError("--seconds is 0 to 86400") }
  }

  func run() throws {
    quiet.apply()
    allowUnlockedMemoryWithoutSwap()
    let clipboard = usesTerminal ? nil : try Clipboard.ofSession()
    let opened = try OpenedPath(path, .items)
    let secret = try opened.session.secret(at: opened.path.ofValue)
    guard let clipboard else { return try TerminalClipboard.write(secret) }
    try clipboard.write(secret)
    guard seconds > 0 else { return }
    try ClipboardClearing.start(secret, in: clipboard, after: seconds)
    if StandardStream.errors.isTerminal { StandardError.note("the clipboard is emptied in \(seconds) s") }
  }
}

/// The process that empties the clipboard. `clip` starts it.
struct ClearClipboardCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "clear-clipboard", abstract: "Empty the clipboard after a time.", shouldDisplay: false)

  @Argument var tool: String
  @Argument var seconds: Int

  func run() throws {
    guard let tool = Clipboard.Tool(rawValue: tool) else { throw Failure(tool, "there is no such tool") }
    try ClipboardClearing.run(Clipboard(tool), after: seconds)
  }
}
