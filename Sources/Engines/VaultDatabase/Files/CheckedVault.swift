package import Crypto
import Model
package import Platform
import VaultRecords

/// Which state of the vault's file was last found to add up, by any process of this device, kept in a file beside the
/// anchor: as long as nothing has written to the vault since, its rows need not be added up again.
///
/// Only of a file whose log is empty. The file says when it was written to by its `st_ctim`, which no call sets; where the
/// kernel counts that in ticks of its clock (before Linux 6.13), a write in the same tick as the last one does not show.
package struct CheckedVault: Sendable {
  private static let magic = Array("KHCHECK1".utf8)
  private static let codeLength = 32

  private let path: String
  private let directory: VaultDirectory
  private let store: [UInt8]

  package init(_ directory: VaultDirectory, store: [UInt8]) {
    path = directory.checkedVault(store: store)
    (self.directory, self.store) = (directory, store)
  }

  /// The vault's file as it is now; nil: there is something in its log, or there is no file.
  package var present: [UInt8]? {
    guard let status = try? Files.status(directory.database) else { return nil }
    if let log = try? Files.status(directory.log), log.size > 0 { return nil }
    return Self.state(status)
  }

  /// The state that a file of this status is in.
  package static func state(_ status: FileStatus) -> [UInt8] {
    var writer = FieldWriter(capacity: 80)
    writer.put(raw: status.id.device)
    writer.put(raw: status.id.inode)
    writer.put(raw: UInt64(bitPattern: status.size))
    for time in [status.modified, status.changed] {
      writer.put(raw: UInt64(bitPattern: time.seconds))
      writer.put(raw: time.nanoseconds)
    }
    return writer.bytes
  }

  /// The file's bytes; empty where there is none.
  package func read() -> [UInt8] { (try? PrivateFile.read(path)) ?? [] }

  /// Whether the vault's file is in the state that `read` gave. `key`: that of the manifest's anchors, which authenticates it.
  package func holds(_ bytes: [UInt8], generation: UInt64, _ key: SymmetricKey) -> Bool {
    guard !bytes.isEmpty, let present else { return false }
    let content = content(present, generation)
    return bytes.dropLast(Self.codeLength).elementsEqual(content)
      && HMAC<SHA256>.isValidAuthenticationCode(
        bytes.suffix(Self.codeLength), authenticating: content, using: key)
  }

  /// Writes that the rows of the file in a state that `present` gave add up to the manifest of a generation. Without it, the
  /// next process adds them up again.
  package func note(_ state: [UInt8], generation: UInt64, _ key: SymmetricKey) {
    let content = content(state, generation)
    let code = Array(HMAC<SHA256>.authenticationCode(for: content, using: key))
    guard read() != content + code else { return }
    try? PrivateFile.replace(path, with: content + code, durably: false)
  }

  private func content(_ state: [UInt8], _ generation: UInt64) -> [UInt8] {
    var writer = FieldWriter(capacity: 128)
    writer.put(raw: Self.magic)
    writer.put(raw: store)
    writer.put(raw: generation)
    return writer.bytes + state
  }
}
