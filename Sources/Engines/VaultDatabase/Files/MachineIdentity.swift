package import Crypto
import Platform
import VaultRecords

/// This machine and the user, as far as a vault tells devices apart by them.
package struct MachineIdentity {
  /// The content of machine-id(5), or the host's name where there is none.
  let machine: [UInt8]
  let user: UInt32

  /// The machine that this process runs on, and its user.
  static var current: MachineIdentity {
    MachineIdentity(machine: machineID() ?? hostName(), user: User.effective)
  }

  /// The number of the device in a vault's manifest: without the key it tells nothing.
  package func device(_ key: SymmetricKey) -> [UInt8] {
    var writer = FieldWriter(capacity: 96)
    writer.put(raw: VaultFormat.two.info("machine"))
    writer.put(1, machine)
    writer.put(2, user)
    return Array(HMAC<SHA256>.authenticationCode(for: writer.bytes, using: key).prefix(16))
  }

  private static func machineID() -> [UInt8]? {
    for path in ["/etc/machine-id", "/var/lib/dbus/machine-id"] {
      guard let bytes = try? Descriptor(path, .reading).read(32), bytes.count == 32 else { continue }
      return bytes
    }
    return nil
  }

  private static func hostName() -> [UInt8] { CurrentProcess.hostName }
}
