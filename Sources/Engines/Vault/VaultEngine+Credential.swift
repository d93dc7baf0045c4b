public import Model
import Platform
import SecretMemory
import VaultRecords

/// The systemd credential of a process that opens a vault (systemd.exec(5), `LoadCredentialEncrypted=`), as it was read.
///
/// Root's process reads it before it becomes the user whose vault it opens: then no program of the user can.
public struct VaultCredential: Sendable {
  fileprivate let content: Result<SlotSecret, StoreError>

  /// Reads the credential `keyhole.unlock` in a folder; nil: there is none. One that can't be read, or is none of Keyhole's, is
  /// reported when a vault is to be unlocked with it.
  public init?(in folder: String) {
    let path = "\(folder)/\(LoginCredential.name)"
    guard Files.hasName(path) else { return nil }
    content = Result { () throws(StoreError) in try Self.secret(at: path) }
  }

  private static func secret(at path: String) throws(StoreError) -> SlotSecret {
    // A span of a temporary that may not be there ends the compiler.
    let bytes = try read(path)
    return try LoginCredential.parse(bytes.span)
  }

  private static func read(_ path: String) throws(StoreError) -> SecretBytes {
    let file: Descriptor
    do throws(Errno) { file = try Descriptor(path, [.reading, .noFollow]) } catch {
      throw StoreError(error, "open")
    }
    do {
      // A byte more than a credential has: then it is none.
      var bytes = try SecretBytes(count: LoginCredential.longest + 1)
      var room = bytes.mutableSpan
      let count = try file.read(into: &room)
      try bytes.resize(to: count)
      return bytes
    } catch {
      throw .unreachable(reason: "\(path) can't be read")
    }
  }
}

extension VaultEngine {
  /// Unlocks the vault with a credential.
  ///
  /// - Throws: `invalidValue` where it is none of Keyhole's, `accessDenied` where it could not be read or opens no slot; `system`,
  ///   `damaged`, `outOfMemory`.
  public func unlock(with credential: VaultCredential) throws(StoreError) {
    let secret = try credential.content.get()
    do throws(StoreError) { try unlock(with: secret) } catch {
      guard error == .rejected else { throw error }
      throw .accessDenied(reason: "it is another vault's, or was removed")
    }
  }
}
