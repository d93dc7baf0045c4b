import ClusterRecords
package import Model
package import SecretMemory
package import VaultRecords

extension ClusterStore {
  /// Seals this device's keys by another passphrase, or by none where that is empty. They are the same keys, and the cluster is not asked.
  ///
  /// A copy of the file from before still opens with the passphrase from before.
  ///
  /// - Throws: `rejected` for another passphrase than the present one, `locked` for an empty one; `noSpace`, `system`, `outOfMemory`: then
  ///   the present one stays.
  package func changePassphrase(
    _ present: borrowing SecretBytes, to new: borrowing SecretBytes, cost: PassphraseCost = .standard
  ) throws(StoreError) {
    let record = try DeviceRecord(try member(present), of: keys.store, passphrase: new, cost: cost)
    try DeviceFiles.replace(files.device, with: record.encoded, durably: true)
    state.use { $0.device = record }
  }

  /// Whether the file of this device's keys is another one than when the store was opened.
  package var hasOtherDeviceFile: Bool { replacement(of: state.use { $0.device }) != nil }

  /// The file of this device's keys, if it is another one than when the store was opened: its passphrase may have been changed since.
  private func replacement(of device: DeviceRecord) -> DeviceRecord? {
    guard let bytes = try? DeviceFiles.read(files.device), let stored = try? DeviceRecord(bytes.span),
      stored.encoded != device.encoded, stored.store == device.store, stored.id == device.id
    else { return nil }
    return stored
  }

  /// Opens this device's keys, by the file as it is now, or as it was when the store was opened. A file that has replaced it counts only with
  /// the keys that the list of members has, where that was read: another program may have written it.
  ///
  /// Returns the file too, which is to be noted when the keys have opened the store.
  ///
  /// - Throws: `rejected`, `locked`, `damaged`.
  func openedKeys(_ passphrase: borrowing SecretBytes) throws(StoreError) -> (MemberSecret, DeviceRecord) {
    let (device, known) = state.use { ($0.device, $0.log.members[$0.device.id]) }
    if let stored = replacement(of: device), let member = try? stored.open(passphrase),
      let keys = try? member.publicKeys(), known == nil || known == keys
    {
      return (member, stored)
    }
    return (try device.open(passphrase), device)
  }
}
