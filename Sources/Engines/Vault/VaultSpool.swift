import Crypto
import FoundationEssentials
import Glibc
import Model
import SecretMemory
import Store

/// Secrets in a file without a name on the vault's disk, sealed under a key that ends with this object.
///
/// So a batch of any size takes no memory, and a process that is killed leaves nothing.
final class VaultSpool: SecretSpool {
  /// All sealed secrets together, in bytes.
  private static let limit: Int64 = 1 << 34

  private let file: Descriptor
  private let key: StoredKey
  /// Where each begins; the last number is where the next one will.
  private var starts: [Int64] = [0]

  init(_ directory: VaultDirectory) throws(StoreError) {
    file = try Self.openFile(in: directory.path)
    do { key = try StoredKey(SymmetricKey(size: .bits256)) } catch {
      throw StoreError(vault: error, errno: 0)
    }
  }

  func append(_ secret: borrowing SecretBytes) throws(StoreError) {
    defer { wipeStack() }
    let start = starts[starts.count - 1]
    let sealed: Data
    do {
      sealed = try Sealing.seal(
        unpadded: secret, under: key.symmetric(), boundTo: Self.binding(starts.count - 1))
    } catch {
      throw StoreError(vault: error, errno: 0)
    }
    guard start + Int64(sealed.count) <= Self.limit else { throw .tooLarge(limit: Int(Self.limit)) }
    if let error = unsafe sealed.withUnsafeBytes({ unsafe write($0, at: start) }) { throw error }
    starts.append(start + Int64(sealed.count))
  }

  func secret(at index: Int) throws(StoreError) -> SecretBytes {
    guard index >= 0, index + 1 < starts.count else { throw .notFound }
    var sealed = [UInt8](repeating: 0, count: Int(starts[index + 1] - starts[index]))
    let start = starts[index]
    if let error = unsafe sealed.withUnsafeMutableBytes({ unsafe read($0, at: start) }) { throw error }
    do {
      return try Sealing.openUnpadded(
        Sealing.box(sealed), under: key.symmetric(), boundTo: Self.binding(index))
    } catch {
      throw StoreError(vault: error, errno: 0)
    }
  }

  /// The secret's number: none opens in the place of another.
  private static func binding(_ index: Int) -> [UInt8] {
    var writer = FieldWriter()
    writer.put(raw: UInt64(index))
    return Array("keyhole batch".utf8) + writer.bytes
  }
}

extension VaultSpool {
  /// O_TMPFILE, a macro: __O_TMPFILE | O_DIRECTORY.
  private static let withoutName = 0o20000000 | O_DIRECTORY

  private static func openFile(in folder: String) throws(StoreError) -> Descriptor {
    // SAFETY: a variadic call with its one argument.
    let number = unsafe open(folder, O_RDWR | O_CLOEXEC | withoutName, 0o600)
    if number >= 0 { return Descriptor(number) }
    guard errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL || errno == ENOENT else {
      throw StoreError(errno: errno, "making a file in \(folder)")
    }
    return try openAndUnlink(folder + "/vault.batch.\(getpid())")
  }

  /// Where the file system knows no file without a name (NFS, vfat).
  private static func openAndUnlink(_ path: String) throws(StoreError) -> Descriptor {
    PrivateFile.unlink(path)
    // SAFETY: a variadic call with its one argument.
    let number = unsafe open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard number >= 0 else { throw StoreError(errno: errno, "making \(path)") }
    PrivateFile.unlink(path)
    return Descriptor(number)
  }

  /// nil: all of it is written.
  private func write(_ bytes: UnsafeRawBufferPointer, at start: Int64) -> StoreError? {
    var done = 0
    while done < bytes.count {
      // SAFETY: the rest of the buffer is behind `done`.
      let count = unsafe pwrite(
        file.number, bytes.baseAddress.map { unsafe $0 + done }, bytes.count - done, off_t(start) + done)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return StoreError(errno: errno, "keeping an item") }
      done += count
    }
    return nil
  }

  /// nil: all of it is read.
  private func read(_ bytes: UnsafeMutableRawBufferPointer, at start: Int64) -> StoreError? {
    var done = 0
    while done < bytes.count {
      // SAFETY: the rest of the buffer is behind `done`.
      let count = unsafe pread(
        file.number, bytes.baseAddress.map { unsafe $0 + done }, bytes.count - done, off_t(start) + done)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return StoreError(errno: count == 0 ? EIO : errno, "reading a kept item") }
      done += count
    }
    return nil
  }
}
