package import Crypto
import FoundationEssentials
package import Model
import Platform
import SecretMemory

/// A class key as it is stored: a row of its table.
package struct ClassKeyRow: Equatable {
  package enum Kind: UInt64 {
    /// Sealed under a key that is derived from the present master key.
    case present = 1
    /// Another device's: sealed under an earlier master key, and with that once more under the present one.
    case carried = 2
    /// The same, sealed by format 1.
    case carriedFromFormatOne = 3

    /// The format of the seal inside.
    package var format: VaultFormat { self == .carriedFromFormatOne ? .one : .two }
  }

  package var id: UInt64
  package var accessibility: UInt64
  package var kind: UInt64
  package var device: [UInt8]
  package var sealed: [UInt8]

  package init(id: UInt64, accessibility: UInt64, kind: UInt64, device: [UInt8], sealed: [UInt8]) {
    (self.id, self.accessibility, self.kind) = (id, accessibility, kind)
    (self.device, self.sealed) = (device, sealed)
  }
}

extension ClassKeyRow {
  /// The whole table as fields, for the manifest's digest.
  package static func fields(of rows: [ClassKeyRow]) -> FieldWriter {
    var writer = FieldWriter(capacity: 512)
    writer.put(raw: "class".utf8)
    for row in rows {
      writer.put(1, row.id)
      writer.put(2, row.accessibility)
      writer.put(3, row.kind)
      writer.put(4, row.device)
      writer.put(5, row.sealed)
    }
    return writer
  }
}

extension ClassKeyRow {
  /// A new key for a class and this device.
  package static func make(
    id: UInt64, _ accessibility: Accessibility, _ device: borrowing DeviceKey?, _ key: SymmetricKey,
    _ keys: MasterKeys, _ header: VaultHeader
  ) throws -> ClassKeyRow {
    var row = ClassKeyRow(
      id: id, accessibility: UInt64(accessibility.code), kind: Kind.present.rawValue,
      device: DeviceKey.anyID, sealed: [])
    switch device {
    case .some(let device): row.device = device.id
    case .none: break
    }
    let wrap = try keys.classKeyWrap(header, accessibility, device: device)
    row.sealed = try Array(
      Cipher.seal(key: key, under: wrap, boundTo: row.binding(.classKey, accessibility, header)))
    return row
  }

  /// `device`: fetches this device's key, for the classes that are bound to one.
  ///
  /// - Throws: `damaged`; `accessDenied` for another device's; what `device` throws.
  package func open(
    _ keys: MasterKeys, _ header: VaultHeader, device: () throws -> DeviceKey?
  ) throws -> (Accessibility, SymmetricKey) {
    guard let accessibility = Accessibility(code: UInt8(truncatingIfNeeded: accessibility)),
      let kind = Kind(rawValue: kind)
    else { throw StoreError.damaged(what: "a class key") }
    let deviceKey = accessibility.isBoundToDevice ? try device() : nil
    try checkDevice(deviceKey, accessibility)
    guard kind != .present else {
      return (accessibility, try open(sealed, keys, header, accessibility, deviceKey))
    }
    let earlier = try carriedContent(keys, accessibility, header)
    var inside = header
    inside.format = kind.format
    return (accessibility, try open(earlier.sealed, earlier.keys, inside, accessibility, deviceKey))
  }

  /// The row for another master key, where the class key itself can't be opened here.
  package func carried(
    from old: MasterKeys, _ oldHeader: VaultHeader, to new: MasterKeys, _ header: VaultHeader
  ) throws -> ClassKeyRow {
    guard let accessibility = Accessibility(code: UInt8(truncatingIfNeeded: accessibility)) else {
      return self
    }
    var row = self
    var content: (keys: MasterKeys, sealed: [UInt8]) = (old, sealed)
    if kind == Kind.present.rawValue {
      row.kind = (oldHeader.format == .one ? Kind.carriedFromFormatOne : .carried).rawValue
    } else {
      content = try carriedContent(old, accessibility, oldHeader)
    }
    let bytes = try Self.bytes(content.keys, content.sealed)
    row.sealed = try Array(
      Cipher.seal(
        secretBytes: bytes, under: new.carriedKeyWrap(header, accessibility),
        boundTo: row.binding(.carriedKey, accessibility, header)))
    return row
  }
}

extension ClassKeyRow {
  private func open(
    _ sealed: [UInt8], _ keys: MasterKeys, _ header: VaultHeader, _ accessibility: Accessibility,
    _ device: borrowing DeviceKey?
  ) throws -> SymmetricKey {
    let wrap = try keys.classKeyWrap(header, accessibility, device: device)
    return try Cipher.openKey(
      Cipher.box(sealed), under: wrap, boundTo: binding(.classKey, accessibility, header))
  }

  private func binding(
    _ purpose: Binding.Purpose, _ accessibility: Accessibility, _ header: VaultHeader
  ) -> [UInt8] {
    Binding.classKey(
      purpose, header.format, store: header.store, id: id, class: accessibility.code, device: device
    ).bytes
  }

  private func checkDevice(_ key: borrowing DeviceKey?, _ accessibility: Accessibility) throws(StoreError) {
    var id = DeviceKey.anyID
    switch key {
    case .some(let key): id = key.id
    case .none: break
    }
    guard device != id else { return }
    guard accessibility.isBoundToDevice else { throw .damaged(what: "a class key") }
    throw .accessDenied(reason: "the secret can be read on the device that stored it only")
  }

  /// The content of a carried row: the earlier keys, and the seal as it was under them.
  private func carriedContent(
    _ keys: MasterKeys, _ accessibility: Accessibility, _ header: VaultHeader
  ) throws -> (keys: MasterKeys, sealed: [UInt8]) {
    try Cipher.openBytes(
      sealed, under: keys.carriedKeyWrap(header, accessibility),
      boundTo: binding(.carriedKey, accessibility, header)
    ) { bytes in
      guard bytes.count > 64 else { throw StoreError.damaged(what: "a class key") }
      let master = SymmetricKey(copying: bytes.extracting(..<32))
      let passcode = SymmetricKey(copying: bytes.extracting(32..<64))
      return (MasterKeys(master: master, passcode: passcode), bytes.extracting(64...).array)
    }
  }

  /// The master key (32), the second key or zeros (32), the seal.
  private static func bytes(_ keys: MasterKeys, _ sealed: [UInt8]) throws -> SecretBytes {
    var bytes = try SecretBytes()
    try keys.master.append(to: &bytes)
    try keys.passcode?.append(to: &bytes)
    try bytes.resize(to: 64)
    try bytes.append(sealed.span)
    return bytes
  }
}
