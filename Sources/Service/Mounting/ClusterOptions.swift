package import ClusterAccess
package import EtcdClient
import Model
import Platform
import Prompting
import SecretMemory
import Synchronization

/// The mount options that name a store in a cluster, and what is shown of it.
package struct ClusterOptions: Sendable {
  package var address: ClusterAddress
  /// Whether `defaults` shows the settings of the store.
  var showsSettings = true
  /// The names of the layers whose settings are shown, the lowest first; empty: there are none, and all suites of the store are shown.
  var layers: [String] = []
  /// The layer that changes are written to; nil: the last one.
  var writtenLayer: String?
  /// How many days the copy of the keychain on this device is used while the cluster does not answer; nil: none is kept.
  var offlineDays: Int?
  /// The descriptor that the password of the cluster's user is read from.
  package var passwordDescriptor: Int32?
  package var login: EtcdLogin?
  /// The passphrase of this device, which a credential holds.
  var passphrase: HeldSecret?

  init(_ address: ClusterAddress) { self.address = address }

  /// The days of the option `offline-secrets` without a number, and those that it takes.
  static let usualOfflineDays = 7
  static let allowedOfflineDays = 1...90

  /// The systemd credentials of this process.
  package static let passwordCredential = "keyhole.etcd-password"
  package static let passphraseCredential = "keyhole.cluster-passphrase"

  /// Reads the password of the cluster's user, and a credential with this device's passphrase.
  ///
  /// - Throws: `Failure` where there is a user and no password.
  package mutating func readSecrets() throws {
    let folder = environment("CREDENTIALS_DIRECTORY")
    if let held = try Self.credential(Self.passphraseCredential, in: folder) { passphrase = HeldSecret(held) }
    login = try Self.login(address, passwordDescriptor)
  }

  /// nil: the address has no user. - Throws: `Failure` where it has one and there is no password.
  package static func login(_ address: ClusterAddress, _ descriptor: Int32?) throws -> EtcdLogin? {
    guard let user = address.user else { return nil }
    if let descriptor {
      return EtcdLogin(user: user, password: try SecretInput.readLine(descriptor: descriptor))
    }
    let folder = environment("CREDENTIALS_DIRECTORY")
    guard let password = try credential(passwordCredential, in: folder) else {
      throw Failure(
        address.text,
        "there is no password for the user `\(user)`: a descriptor or the credential `\(passwordCredential)` holds it"
      )
    }
    return EtcdLogin(user: user, password: password)
  }

  /// nil: there is none.
  private static func credential(_ name: String, in folder: String?) throws -> SecretBytes? {
    guard let folder, Files.hasName("\(folder)/\(name)") else { return nil }
    let file: Descriptor
    do throws(Errno) { file = try Descriptor("\(folder)/\(name)", .reading) } catch {
      throw Failure(name, "this credential can't be read: \(error)")
    }
    return try SecretInput.readLine(descriptor: file.number)
  }
}

/// A secret that is taken once.
final class HeldSecret: Sendable {
  private let secret: Mutex<SecretBytes?>

  init(_ secret: consuming SecretBytes) { self.secret = Mutex(secret) }

  func take() -> SecretBytes? { secret.withLock { $0.take() } }
}
