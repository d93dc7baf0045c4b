import ArgumentParser
import Model
import Platform
import Prompting
import SecretMemory
import Service
import Store
import Tree

struct OneTimeCodeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "otp",
    abstract: "Print the one-time code of an item, or store the key that codes are computed from.",
    discussion: """
      The code is that of RFC 6238 (it changes with the time) or of RFC 4226 (each is given out once). \
      With --set, an otpauth:// URI or a key in base32 is read from standard input, or asked for on the terminal.
      """)

  @Argument(help: "An item: a path of the tree or of a mount, or SERVICE/ACCOUNT.", completion: .treePath)
  var path: String

  @Flag(help: "Print the code and how long it is valid as JSON.")
  var json = false

  @Flag(help: "Store an otpauth:// URI, or a key in base32, as the item's second secret.")
  var set = false

  func validate() throws {
    if json, set { throw ValidationError("--json prints a code; --set stores what it is computed from") }
  }

  func run() throws {
    allowUnlockedMemoryWithoutSwap()
    let opened = try OpenedPath(path, .items)
    let (path, session) = (opened.path, opened.session)
    guard path.isSecret, path.isInItem else {
      throw UsageError(message: "one-time codes are of items: keychain/generic/SERVICE/ACCOUNT")
    }
    guard !set else { return try store(path, session) }
    let code = try session.oneTimeCode(at: path)
    if json { Self.printJSON(code) } else { Self.print(code) }
    session.endProcess()
  }

  private func store(_ path: TreePath, _ session: TreeSession) throws {
    let file = try session.otpauthFile(of: path)
    try session.unlock(toStoreAt: file)
    let input = try SecretInput.read(
      prompt: "otpauth:// URI or key in base32 of \(path.string): ", hidden: true,
      limit: FileTree.secretLimit)
    try session.setOneTimeKey(input, at: path)
  }

  private static func print(_ code: borrowing OneTimeCode) {
    StandardOutput.write(code.digits.span)
    if StandardStream.output.isTerminal, let left = code.moment.secondsLeft {
      StandardOutput.write("  \(left) s left")
    }
    StandardOutput.write("\n")
  }

  private static func printJSON(_ code: borrowing OneTimeCode) {
    StandardOutput.write("{\"code\":\"")
    StandardOutput.write(code.digits.span)
    switch code.moment {
    case .step(_, let period):
      let end = code.moment.end?.iso8601.quotedAsJSON ?? "null"
      StandardOutput.write(
        "\",\"type\":\"totp\",\"period\":\(period),\"validUntil\":\(end),\"secondsLeft\":\(code.moment.secondsLeft ?? 0)}\n"
      )
    case .counter(let counter): StandardOutput.write("\",\"type\":\"hotp\",\"counter\":\(counter)}\n")
    }
  }
}

extension OneTimeCode.Moment {
  /// Whole seconds until the next code, at least 1; nil: no time ends it.
  fileprivate var secondsLeft: Int64? {
    end.map { max(1, $0.seconds.subtractingReportingOverflow(Timestamp.now.seconds).partialValue) }
  }
}
