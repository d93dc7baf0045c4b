import ArgumentParser
import Formats

/// The cost of a passphrase that seals a file.
struct SealingCostOption: ParsableArguments {
  @Option(
    name: .customLong("cost"),
    help: ArgumentHelp(
      "The cost of a guess at the file's passphrase: 2^COST times 1 KiB of memory, 14 to 20.",
      valueName: "cost"))
  var value = SealedFile.standardCost

  func validate() throws {
    guard SealedFile.passphraseCosts.contains(value) else { throw ValidationError("--cost is 14 to 20") }
  }
}
