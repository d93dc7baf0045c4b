import Crypto
import GRDB
import Platform
import Synchronization
import VaultDatabase
import VaultRecords

/// Whether all rows of the vault add up to its manifest: known to this process, and noted for the next one.
///
/// It is also asked on the thread that brings the log into the file, so it has a lock of its own.
final class Soundness: Sendable {
  private struct Known {
    /// The database's `data_version`: as long as it is the same, only this process has changed the vault.
    let version: UInt64
    var generation: UInt64
    let anchorKey: SymmetricKey
  }

  private let file: CheckedVault
  private let known = Mutex<Known?>(nil)

  init(_ file: CheckedVault) {
    self.file = file
  }

  /// The state of the vault's file now; nil: its log is not empty.
  var presentFile: [UInt8]? { file.present }

  /// The note of the last check by any process of this device; nil: there is none.
  func lastCheck() -> LastCheck? {
    let bytes = file.read()
    return bytes.isEmpty ? nil : LastCheck(file: file, bytes: bytes)
  }

  struct LastCheck {
    fileprivate let file: CheckedVault
    fileprivate let bytes: [UInt8]

    /// Whether nothing has written to the file since all its rows added up to the manifest.
    func holds(for manifest: Manifest) -> Bool {
      file.holds(bytes, generation: manifest.generation, manifest.anchorKey)
    }
  }

  /// All rows of a version add up to `manifest`; nil: they don't. `state`: that of the file before they were read.
  func note(_ version: UInt64, _ manifest: Manifest?, ofFile state: [UInt8]? = nil) {
    let found = manifest.map {
      Known(version: version, generation: $0.generation, anchorKey: $0.anchorKey)
    }
    known.withLock { $0 = found }
    guard let found, let state, state == file.present else { return }
    file.note(state, generation: found.generation, found.anchorKey)
  }

  /// This process has committed a change with its manifest.
  func note(committed manifest: Manifest) {
    known.withLock { $0?.generation = manifest.generation }
  }

  /// This process has brought the log into the file, which had a status then.
  func noteEmptyLog(of database: Database, _ status: FileStatus) {
    let state = CheckedVault.state(status)
    // In this order: what another process brings in between would be noted as checked.
    guard state == file.present, let found = known.withLock({ $0 }),
      (try? Connection.dataVersion(database)) == found.version
    else { return }
    file.note(state, generation: found.generation, found.anchorKey)
  }
}
