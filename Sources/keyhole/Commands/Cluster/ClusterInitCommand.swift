import ArgumentParser
import ClusterAccess
import Model
import Platform
import Prompting
import SecretMemory
import Service
import VaultRecords

struct ClusterInitCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "init", abstract: "Make a store, with this device as its first member.",
    discussion: """
      Asks for a passphrase, which seals this device's keys here; without a terminal it is a line of standard input. Prints the \
      recovery code, once: where all devices are lost, `keyhole cluster join --recover` opens the store with it.
      """)

  @Flag(help: "Take a weak passphrase too, without a question.")
  var weak = false

  @OptionGroup var address: ClusterAddressOptions

  func run() throws {
    let device = try address.device()
    let passphrase = try NewPassphrase.ask(allowingWeak: weak)
    let code = try device.create(passphrase)
    StandardError.write(
      "The store is made. Its recovery code is shown this once: write it down, and keep it apart from all devices.\n\n"
    )
    let text = try RecoveryCode.text(of: code)
    StandardOutput.write(text.span)
    StandardOutput.print("")
    StandardError.write(
      "\n`keyhole mount -o \(device.address.mountOptions.quotedForShell)` shows the store.\n")
  }
}
