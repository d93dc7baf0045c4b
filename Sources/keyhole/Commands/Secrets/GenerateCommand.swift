import ArgumentParser
import Model
import Platform
import Prompting
import SecretMemory
import Service

struct GenerateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "generate", abstract: "Make a random password or passphrase, and store or print it.",
    discussion: """
      With PATH it becomes the secret of that item, which is made; one that is there is kept, unless --replace is given. \
      Without PATH it is printed.

      24 letters and digits, of each kind at least one (about 142 bits); --words takes words of the EFF's long list \
      instead (about 13 bits each). The random numbers are the system's.
      """)

  @Option(name: .shortAndLong, help: "How many characters, 8 to 1024.")
  var length: Int?

  @Flag(name: .shortAndLong, help: "Punctuation too.")
  var symbols = false

  @Option(name: .shortAndLong, help: "How many words, 3 to 64, in place of characters.")
  var words: Int?

  @Option(help: "The text between two words.")
  var separator = "-"

  @Flag(help: "Replace the secret of an item that is there; its attributes stay.")
  var replace = false

  @Flag(help: "With PATH, print it too.")
  var show = false

  @OptionGroup var quiet: QuietOption

  @Argument(help: "An item, such as keychain/generic/my.service/peter.", completion: .treePath)
  var path: String?

  func validate() throws {
    if words != nil, length != nil || symbols {
      throw ValidationError("--words goes without --length and --symbols")
    }
    if let length, !PasswordRecipe.lengths.contains(length) { throw ValidationError("--length is 8 to 1024") }
    if let words, !PasswordRecipe.wordCounts.contains(words) { throw ValidationError("--words is 3 to 64") }
    if path == nil, replace || show { throw ValidationError("--replace and --show are for a PATH") }
  }

  func run() throws {
    quiet.apply()
    allowUnlockedMemoryWithoutSwap()
    let recipe =
      words.map { PasswordRecipe(words: $0, separator: separator) }
      ?? PasswordRecipe(length: length ?? 24, symbols: symbols)
    let secret = try recipe.make()
    if let path { try store(secret, at: path) }
    if path == nil || show {
      StandardOutput.write(secret.span)
      StandardOutput.print("")
    }
    if StandardStream.errors.isTerminal { StandardError.note("about \(recipe.bits) bits") }
  }

  private func store(_ secret: borrowing SecretBytes, at text: String) throws {
    let opened = try OpenedPath(text, replace ? .items : .none)
    let path = opened.path.ofValue
    guard path.isSecret, path.parent.isItem, !path.isOtpauth else {
      throw UsageError(message: "a secret is stored in an item: keychain/generic/SERVICE/ACCOUNT")
    }
    try opened.session.requireStored(path)
    guard try replace || opened.session.existingNode(at: path) == nil else {
      throw Failure(path.parent.string, "there is a secret already; --replace replaces it")
    }
    try opened.session.write(secret.span, to: path)
  }
}
