import Model
import SecretMemory
import Store

// How one secret is read.
extension SecretServiceClient {
  /// One round trip.
  func secret(of id: ItemID, before deadline: Deadline) async throws(StoreError) -> SecretBox {
    try await require(id, before: deadline)
    let box = try await attempt(before: deadline) { keyring, session throws(BusError) in
      let answer = try await keyring.call(
        id.rawValue, ServiceName.item, "GetSecret", [Variant(path: session.path)], before: deadline)
      guard let encoded = answer[0] else { throw .refused(name: BusError.empty, message: "") }
      let secret = session.decode(encoded) { bytes, _ in SecretBox(copying: bytes) }
      guard let secret else { throw .refused(name: BusError.empty, message: "") }
      guard let secret else { throw .refused(name: BusError.noMemory, message: "") }
      return secret
    }
    notice(box, of: id)
    return box
  }

  /// - Throws: `notFound` for what is no item here; it need not even be an object path.
  func require(_ id: ItemID, before deadline: Deadline) async throws(StoreError) {
    if loadedOwner == nil { try await load(before: deadline) }
    guard ledger[id] != nil else { throw .notFound }
  }

  /// Not every service tells of every change.
  private func notice(_ secret: SecretBox, of id: ItemID) {
    guard let record = ledger[id], !locks.isHeld(id.rawValue) else { return }
    let measure = secret.withSecret { Measure($0.span, record.contentType) }
    guard measure?.digest != record.digest else { return }
    dirty.items.insert(id.rawValue)
    pump()
  }
}

extension BusError {
  /// Asked for one secret, none came: so some services say that it is locked.
  static let empty = "org.freedesktop.Secret.Error.IsLocked"
  static let noMemory = "keyhole.NoMemory"
}
