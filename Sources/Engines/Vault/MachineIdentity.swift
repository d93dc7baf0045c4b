import Crypto
import Glibc

/// This machine and the user, as far as a vault tells devices apart by them.
struct MachineIdentity {
  /// The content of machine-id(5), or the host's name where there is none.
  let machine: [UInt8]
  let user: UInt32

  /// The machine that this process runs on, and its user.
  static var current: MachineIdentity {
    MachineIdentity(machine: machineID() ?? hostName(), user: geteuid())
  }

  /// The number of the device in a vault's manifest: without the key it tells nothing.
  func device(_ key: SymmetricKey) -> [UInt8] {
    var writer = FieldWriter(capacity: 96)
    writer.put(raw: VaultFormat.two.info("machine"))
    writer.put(1, machine)
    writer.put(2, user)
    return Array(HMAC<SHA256>.authenticationCode(for: writer.bytes, using: key).prefix(16))
  }

  private static func machineID() -> [UInt8]? {
    for path in ["/etc/machine-id", "/var/lib/dbus/machine-id"] {
      guard let file = unsafe fopen(path, "re") else { continue }
      defer { unsafe fclose(file) }
      var bytes = [UInt8](repeating: 0, count: 32)
      if unsafe fread(&bytes, 1, bytes.count, file) == bytes.count { return bytes }
    }
    return nil
  }

  private static func hostName() -> [UInt8] {
    var name = [CChar](repeating: 0, count: 256)
    guard unsafe gethostname(&name, name.count - 1) == 0 else { return [] }
    return name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
  }
}
