import ArgumentParser
import ClusterAccess
import Control
import Model
import Prompting
import SecretMemory
import Service

struct ClusterPassphraseCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "passphrase", abstract: "Change, set or remove the passphrase of this device.",
    discussion: """
      On a terminal all is asked for, unseen. Otherwise lines of standard input are read: the present passphrase where there is \
      one, then the new one. An empty line as the new one removes it: then every program of yours can open the store on this \
      device. Where the input ends before, nothing is changed.

      The keys of this device stay the same, and the servers are not asked. A mount of the store takes the new passphrase. A copy of the \
      device's file from before still opens with the passphrase from before: where another person may have both, \
      `keyhole cluster remove`, on another device, takes this one away, and it joins again.
      """)

  @OptionGroup var address: ClusterAddressOptions

  @Flag(help: "Set the new passphrase also where it is weak, without a question.")
  var weak = false

  func run() throws {
    let device = try address.device()
    let subject = device.address.text
    let present =
      try device.takesPassphrase
      ? PresentPassphrase.ask(subject) { (typed) throws(StoreError) in try device.check(typed) }
      : SecretBytes()
    let new = try NewPassphrase.ask(allowingWeak: weak)
    let places = try StoragePaths.current()
    let mounts = device.mounts().filter { mount in
      // One that is locked takes it with the next unlock, and so does one whose settings alone are the cluster's: a passphrase is for its keychain
      // as long as they are open.
      (try? RunningMount(mount)).map { $0.hasClusterKeychain && !$0.isLocked } ?? false
    }
    try device.changePassphrase(present, to: new)
    StandardError.write(
      new.isEmpty
        ? "This device has no passphrase: every program of yours can open the store with its file \(device.file).\n"
        : "The passphrase is set. Copies of \(device.file) from before still open with the one from before; delete them.\n"
    )
    for mount in mounts {
      do throws(StoreError) { try mount.ask(.unlock, secret: new, places) } catch {
        throw Failure(
          mount.path,
          "the passphrase was changed, and this mount could not take it: \(error.message); `keyhole unlock` gives it the new one"
        )
      }
    }
  }
}
