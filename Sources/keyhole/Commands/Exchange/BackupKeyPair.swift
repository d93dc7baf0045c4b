import Backup
import Formats
import Model
import Prompting
import SecretMemory
import Service

/// `keyhole backup --init`.
struct BackupKeyPair {
  let places: StoragePaths

  init(_ places: StoragePaths) {
    self.places = places
  }

  func make() throws {
    do throws(BackupError) {
      let path = BackupKey.path(places.configuration)
      guard try BackupKey.publicKey(places.configuration) == nil else {
        throw BackupError(path, "there is a key already; move the file away to make another one")
      }
      let key = try Self.newKey()
      let publicKey = try Self.publicKey(of: key)
      // First shown, then kept: a backup to a key that a person has not seen would be lost.
      try show(key, publicKey)
      try BackupKey.keep(publicKey, places.configuration)
      StandardError.write("Its public half is in \(path.escapedForTerminal).\n")
    } catch {
      throw Failure(error)
    }
  }

  private func show(_ key: borrowing SecretBytes, _ publicKey: [UInt8]) throws(BackupError) {
    StandardError.write(
      """
      This private key opens the backups that `keyhole backup FILE` writes from now on. It is shown once and kept \
      nowhere: write it down, or keep it in a password manager on another machine. Without it these backups are lost. \
      Its number, the last eight digits, is \(BackupKey.number(of: publicKey)).

      """)
    let text = try BackupKey.text(of: key)
    StandardOutput.write(text.span)
    StandardOutput.write("\n")
  }

  private static func newKey() throws(BackupError) -> SecretBytes {
    do throws(FormatError) { return try SealedFile.makePrivateKey() } catch { throw BackupError(nil, error) }
  }

  private static func publicKey(of key: borrowing SecretBytes) throws(BackupError) -> [UInt8] {
    do throws(FormatError) { return try SealedFile.publicKey(of: key) } catch {
      throw BackupError(nil, error)
    }
  }
}
