import Crypto
import FoundationEssentials
package import Model
import Platform
package import SecretMemory
package import VaultRecords

/// The file of a device: its private keys, sealed by its passphrase.
package struct DeviceRecord: Sendable {
  package var store: ItemKey
  package var id: ItemKey
  /// How the passphrase is to be derived (scrypt); empty: there is none, and the keys are not sealed.
  package var parameters: [UInt8]
  package var content: [UInt8]

  package var takesPassphrase: Bool { !parameters.isEmpty }

  /// `passphrase`: empty for none. - Throws: `outOfMemory`.
  package init(
    _ member: MemberSecret, of store: ItemKey, passphrase: borrowing SecretBytes,
    cost: PassphraseCost = .standard
  ) throws(StoreError) {
    (self.store, id, parameters, content) = (store, member.id, [], [])
    guard !passphrase.isEmpty else {
      content = try member.withBytes { $0.unprotected }
      return
    }
    do {
      var source = PassphraseSource(passphrase: try SecretBytes(copying: passphrase), keyFile: nil)
      source.cost = cost
      parameters = source.makeParameters()
      let key = try source.input(parameters).key(info: ClusterFormat.info("device"))
      let binding = binding
      content = try member.withBytes { bytes throws(StoreError) in
        do { return Array(try Cipher.seal(secretBytes: bytes, under: key, boundTo: binding)) } catch {
          throw StoreError(cluster: error)
        }
      }
    } catch { throw StoreError(cluster: error) }
  }

  private var binding: [UInt8] {
    var writer = FieldWriter(capacity: 128)
    writer.put(raw: "\(ClusterFormat.prefix)/device".utf8)
    writer.put(1, store)
    writer.put(2, id)
    writer.put(3, parameters)
    return writer.bytes
  }

  /// - Throws: `locked` for an empty passphrase where it takes one, `rejected` for a wrong one, `damaged`.
  package func open(_ passphrase: borrowing SecretBytes) throws(StoreError) -> MemberSecret {
    do {
      guard takesPassphrase else { return try MemberSecret(id: id, SecretBytes(copying: content.span)) }
      guard !passphrase.isEmpty else { throw StoreError.locked }
      let source = PassphraseSource(passphrase: try SecretBytes(copying: passphrase), keyFile: nil)
      let key = try source.input(parameters).key(info: ClusterFormat.info("device"))
      return try MemberSecret(id: id, opened(under: key))
    } catch { throw StoreError(cluster: error) }
  }

  private func opened(under key: SymmetricKey) throws -> SecretBytes {
    do {
      var bytes = try SecretBytes()
      try Cipher.openBytes(content, under: key, boundTo: binding) { try bytes.append($0) }
      return bytes
    } catch is SecretMemoryError {
      throw StoreError.outOfMemory
    } catch {
      throw StoreError.rejected
    }
  }

  private enum Tag {
    static let store: UInt8 = 1
    static let id: UInt8 = 2
    static let parameters: UInt8 = 3
    static let content: UInt8 = 4
  }

  package var encoded: [UInt8] {
    var writer = FieldWriter(capacity: 256)
    writer.put(Tag.store, store)
    writer.put(Tag.id, id)
    writer.put(Tag.parameters, parameters)
    writer.put(Tag.content, content)
    return writer.bytes
  }

  /// - Throws: `damaged`.
  package init(_ bytes: Span<UInt8>) throws(StoreError) {
    var (store, id): (ItemKey?, ItemKey?) = (nil, nil)
    (parameters, content) = ([], [])
    var reader = FieldReader(bytes)
    while let field = try reader.next() {
      switch field.tag {
      case Tag.store: store = ItemKey(field.bytes)
      case Tag.id: id = ItemKey(field.bytes)
      case Tag.parameters: parameters = field.bytes.array
      case Tag.content: content = field.bytes.array
      default: throw .damaged(what: "the file of the device")
      }
    }
    (self.store, self.id) = (try store.orDamaged(), try id.orDamaged())
  }
}
