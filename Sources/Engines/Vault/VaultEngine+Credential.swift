public import Model
import Platform
import SecretMemory
import VaultRecords

extension VaultEngine {
  /// Unlocks the vault by the systemd credential `keyhole.unlock` in a folder. Nothing happens where there is none.
  ///
  /// - Throws: `invalidValue` where the file is no credential of Keyhole's, `accessDenied` where it can't be read or opens no
  ///   slot; `system`, `damaged`, `outOfMemory`.
  public func unlock(withCredentialIn folder: String) throws(StoreError) {
    let path = "\(folder)/\(LoginCredential.name)"
    guard Files.hasName(path) else { return }
    let credential = try LoginCredential.parse(Self.read(path).span)
    do throws(StoreError) { try unlock(with: credential) } catch {
      guard error == .rejected else { throw error }
      throw .accessDenied(reason: "it is another vault's, or was removed")
    }
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
