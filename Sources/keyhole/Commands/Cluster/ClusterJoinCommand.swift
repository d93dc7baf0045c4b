import ArgumentParser
import ClusterAccess
import Model
import Platform
import Prompting
import SecretMemory
import Service
import VaultRecords

struct ClusterJoinCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "join", abstract: "Ask for this device to belong to a store, and confirm the store's code.",
    discussion: """
      The first call asks for a passphrase, which seals this device's keys here, and prints a code. On a device that \
      belongs to the store, `keyhole cluster approve` takes that code and shows one. It is typed here: at once, or at the next \
      call, which takes the passphrase again. Only then this device writes anything to the store but its request.

      Without a terminal the passphrase and the code are lines of standard input.
      """)

  @Flag(
    help:
      "Belong to the store by its recovery code: where no other device is left, or this one has lost its state folder."
  )
  var recover = false

  @Flag(help: "Forget the keys of this device, which was removed, or has asked and was not confirmed.")
  var withdraw = false

  @Flag(help: "Take a weak passphrase too, without a question.")
  var weak = false

  @OptionGroup var address: ClusterAddressOptions

  func run() throws {
    let device = try address.device()
    if withdraw { return try device.withdraw() }
    if recover { return try self.recover(device) }
    let passphrase: SecretBytes
    let own: String?
    if device.hasAsked {
      passphrase = try ClusterInput.passphrase()
      own = try device.askAgain(passphrase)
    } else {
      passphrase = try NewPassphrase.ask(allowingWeak: weak)
      own = try device.ask(passphrase)
    }
    if let own {
      StandardOutput.print(own)
      StandardError.write(
        "This is this device's code. `keyhole cluster approve`, on a device that belongs to the store, takes it.\n"
      )
    }
    guard let code = try ClusterInput.code("The code that the other device shows then: ") else {
      return StandardError.write(
        "When it was approved, `keyhole cluster join` takes the code that the other device shows.\n")
    }
    try device.confirm(code, passphrase)
    StandardError.write("`keyhole mount -o \(device.address.mountOptions.quotedForShell)` shows the store.\n")
  }

  private func recover(_ device: ClusterDevice) throws {
    let typed = try SecretInput.passphrase("Recovery code: ")
    let code: SlotSecret
    do throws(StoreError) { code = try RecoveryCode.parse(typed.span) } catch {
      throw Failure("recovery code", error)
    }
    // A device that has lost what it had seen of the store keeps its keys.
    let passphrase = try device.hasAsked ? ClusterInput.passphrase() : NewPassphrase.ask(allowingWeak: weak)
    try device.recover(code, passphrase)
    StandardError.write("`keyhole mount -o \(device.address.mountOptions.quotedForShell)` shows the store.\n")
  }
}
