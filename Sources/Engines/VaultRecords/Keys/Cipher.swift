package import Crypto
package import FoundationEssentials
package import Model
package import SecretMemory

/// AES-256-GCM over padded plaintexts. A sealed blob is nonce (12) | ciphertext | tag (16).
package enum Cipher {
  /// Seals what is no secret to the memory: metadata and the manifest.
  package static func seal(
    _ content: [UInt8], under key: SymmetricKey, boundTo binding: [UInt8]
  ) throws -> Data {
    var writer = FieldWriter(capacity: Padding.padded(content.count + 4))
    writer.put(raw: UInt32(content.count))
    writer.put(raw: content)
    let padding = Padding.padded(content.count + 4) - writer.bytes.count
    writer.put(zeros: padding)
    return try combined(AES.GCM.seal(writer.bytes, using: key, authenticating: binding))
  }

  /// Lends what `seal` sealed. - Throws: `damaged`.
  package static func open<Result>(
    _ sealed: [UInt8], under key: SymmetricKey, boundTo binding: [UInt8],
    _ body: (Span<UInt8>) throws -> Result
  ) throws -> Result {
    var plain = try openPadded(box(sealed), under: key, boundTo: binding)
    // Names are no secrets, but a wipe costs less than asking which metadata might be one.
    defer { erase(&plain) }
    return try body(content(of: plain.span))
  }

  package static func seal(
    secret: borrowing SecretBytes, under key: SymmetricKey, boundTo binding: [UInt8]
  ) throws -> Data {
    let padded = try pad(secret)
    return try seal(bytes: padded.span, under: key, boundTo: binding)
  }

  /// Opens what `seal(secret:)` sealed. - Throws: `damaged`, `SecretMemoryError`.
  package static func openSecret(
    _ sealed: AES.GCM.SealedBox, under key: SymmetricKey, boundTo binding: [UInt8]
  ) throws -> SecretBytes {
    var plain = try openPadded(sealed, under: key, boundTo: binding)
    defer { erase(&plain) }
    var secret = try SecretBytes()
    try secret.append(content(of: plain.span))
    return secret
  }

  /// Seals a secret of which the length need not be hidden, after one byte that says how.
  package static func seal(
    unpadded secret: borrowing SecretBytes, under key: SymmetricKey, boundTo binding: [UInt8]
  ) throws -> Data {
    var marked = try SecretBytes(count: 1 + secret.count)
    try marked.write(secret.span, at: 1)
    return try seal(bytes: marked.span, under: key, boundTo: binding)
  }

  /// Opens what `seal(unpadded:)` sealed. - Throws: `damaged`, `SecretMemoryError`.
  package static func openUnpadded(
    _ sealed: AES.GCM.SealedBox, under key: SymmetricKey, boundTo binding: [UInt8]
  ) throws -> SecretBytes {
    var plain = try openPadded(sealed, under: key, boundTo: binding)
    defer { erase(&plain) }
    guard plain.first == 0 else { throw StoreError.damaged(what: "seal") }
    var secret = try SecretBytes()
    try secret.append(plain.span.extracting(droppingFirst: 1))
    return secret
  }

  /// Seals a key, which needs no padding.
  package static func seal(
    key: SymmetricKey, under other: SymmetricKey, boundTo binding: [UInt8]
  ) throws -> Data {
    try key.withBytes { try seal(bytes: $0, under: other, boundTo: binding) }
  }

  /// Seals several keys, one after the other, which need no padding.
  package static func seal(
    keys: [SymmetricKey], under other: SymmetricKey, boundTo binding: [UInt8]
  ) throws -> Data {
    var content = try SecretBytes()
    for key in keys { try key.append(to: &content) }
    return try seal(bytes: content.span, under: other, boundTo: binding)
  }

  /// Opens what `seal(keys:)` sealed. - Throws: `damaged` also for another number of keys.
  static func openKeys(
    _ sealed: [UInt8], _ count: Int, under other: SymmetricKey, boundTo binding: [UInt8]
  ) throws -> [SymmetricKey] {
    try openBytes(sealed, under: other, boundTo: binding) { bytes in
      guard bytes.count == 32 * count else { throw StoreError.damaged(what: "key") }
      var keys: [SymmetricKey] = []
      for index in 0..<count {
        keys.append(SymmetricKey(copying: bytes.extracting(32 * index..<32 * (index + 1))))
      }
      return keys
    }
  }

  /// Lends what `seal(secretBytes:)` or `seal(keys:)` sealed. - Throws: `damaged`.
  package static func openBytes<Result>(
    _ sealed: [UInt8], under key: SymmetricKey, boundTo binding: [UInt8],
    _ body: (Span<UInt8>) throws -> Result
  ) throws -> Result {
    var plain = try openPadded(box(sealed), under: key, boundTo: binding)
    defer { erase(&plain) }
    return try body(plain.span)
  }

  /// Seals bytes as they are, which need no padding.
  package static func seal(
    secretBytes: borrowing SecretBytes, under key: SymmetricKey, boundTo binding: [UInt8]
  ) throws -> Data {
    try seal(bytes: secretBytes.span, under: key, boundTo: binding)
  }

  /// Seals what is sealed already once more.
  package static func seal(sealed: Data, under key: SymmetricKey, boundTo binding: [UInt8]) throws -> Data {
    try combined(AES.GCM.seal(sealed, using: key, authenticating: binding))
  }

  /// Opens what `seal(sealed:)` sealed. - Throws: `damaged`.
  static func openSealed(
    _ sealed: AES.GCM.SealedBox, under key: SymmetricKey, boundTo binding: [UInt8]
  ) throws -> AES.GCM.SealedBox {
    try box(openPadded(sealed, under: key, boundTo: binding))
  }

  /// Opens what `seal(key:)` sealed. - Throws: `damaged`.
  package static func openKey(
    _ sealed: AES.GCM.SealedBox, under other: SymmetricKey, boundTo binding: [UInt8]
  ) throws -> SymmetricKey {
    var plain = try openPadded(sealed, under: other, boundTo: binding)
    defer { erase(&plain) }
    guard plain.count == 32 else { throw StoreError.damaged(what: "key") }
    return SymmetricKey(data: plain)
  }
}

extension Cipher {
  private static func pad(_ secret: borrowing SecretBytes) throws -> SecretBytes {
    var padded = try SecretBytes(count: Padding.padded(secret.count + 4))
    var count = FieldWriter(capacity: 4)
    count.put(raw: UInt32(secret.count))
    try padded.write(count.bytes.span, at: 0)
    try padded.write(secret.span, at: 4)
    return padded
  }

  private static func seal(
    bytes: Span<UInt8>, under key: SymmetricKey, boundTo binding: [UInt8]
  ) throws -> Data {
    guard !bytes.isEmpty else { throw StoreError.damaged(what: "key") }
    return try bytes.withBorrowedData {
      try combined(AES.GCM.seal($0, using: key, authenticating: binding))
    }
  }

  private static func combined(_ sealed: AES.GCM.SealedBox) throws -> Data {
    guard let combined = sealed.combined else { throw StoreError.damaged(what: "seal") }
    return combined
  }

  /// A sealed blob as the library wants it. - Throws: `damaged`.
  package static func box(_ sealed: some DataProtocol) throws(StoreError) -> AES.GCM.SealedBox {
    do { return try AES.GCM.SealedBox(combined: sealed) } catch { throw .damaged(what: "seal") }
  }

  private static func openPadded(
    _ sealed: AES.GCM.SealedBox, under key: SymmetricKey, boundTo binding: [UInt8]
  ) throws -> Data {
    do {
      return try AES.GCM.open(sealed, using: key, authenticating: binding)
    } catch {
      throw StoreError.damaged(what: "seal")
    }
  }

  @_lifetime(copy padded)
  private static func content(of padded: Span<UInt8>) throws -> Span<UInt8> {
    var reader = FieldReader(padded)
    let count = try reader.integer(UInt32.self)
    return try reader.take(Int(count))
  }

  private static func erase(_ plain: inout Data) {
    wipe(&plain)
  }
}
