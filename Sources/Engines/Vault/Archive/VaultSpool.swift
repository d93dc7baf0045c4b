import Crypto
import FoundationEssentials
import Model
import Platform
import SecretMemory
import Store
import VaultDatabase
import VaultRecords

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
      sealed = try Cipher.seal(
        unpadded: secret, under: key.symmetric(), boundTo: Self.binding(starts.count - 1))
    } catch {
      throw StoreError(vault: error, errno: 0)
    }
    guard start + Int64(sealed.count) <= Self.limit else { throw .tooLarge(limit: Int(Self.limit)) }
    do throws(Errno) { try file.write(Array(sealed), at: start) } catch {
      throw StoreError(error, "keeping an item")
    }
    starts.append(start + Int64(sealed.count))
  }

  func secret(at index: Int) throws(StoreError) -> SecretBytes {
    guard index >= 0, index + 1 < starts.count else { throw .notFound }
    let (start, count) = (starts[index], Int(starts[index + 1] - starts[index]))
    let sealed = try StoreError.call("reading a kept item") { () throws(Errno) in
      let bytes = try file.read(count, at: start)
      guard bytes.count == count else { throw .EIO }
      return bytes
    }
    do {
      return try Cipher.openUnpadded(
        Cipher.box(sealed), under: key.symmetric(), boundTo: Self.binding(index))
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
  private static func openFile(in folder: String) throws(StoreError) -> Descriptor {
    do throws(Errno) {
      return try Descriptor(unnamedIn: folder)
    } catch .EOPNOTSUPP, .EISDIR, .EINVAL, .ENOENT {
      return try openAndUnlink(folder + "/vault.batch.\(CurrentProcess.number)")
    } catch {
      throw StoreError(error, "making a file in \(folder)")
    }
  }

  /// Where the file system knows no file without a name (NFS, vfat).
  private static func openAndUnlink(_ path: String) throws(StoreError) -> Descriptor {
    PrivateFile.unlink(path)
    defer { PrivateFile.unlink(path) }
    return try StoreError.call("making \(path)") { () throws(Errno) in
      try Descriptor(path, [.readingAndWriting, .create, .exclusive, .noFollow])
    }
  }
}
