import Backup
import Formats
import Glibc
import SecretMemory
import Testing

/// The key pair of unattended backups, as a file and as what a person types.
@Suite struct BackupKeyTests {
  private func text(_ key: borrowing SecretBytes) throws -> [UInt8] {
    try unsafe BackupKey.text(of: key).withUnsafeBytes { unsafe Array($0) }
  }

  @Test func whatIsShownCanBeTyped() throws {
    let key = try SealedFile.makePrivateKey()
    let shown = try text(key)
    let number = BackupKey.number(of: try SealedFile.publicKey(of: key))
    #expect(String(decoding: shown, as: UTF8.self).hasSuffix(number))
    let typings = [
      shown, Array(shown.dropFirst("keyhole-backup-private:".utf8.count)),
      Array(String(decoding: shown, as: UTF8.self).dropFirst(23).uppercased().utf8),
      shown.prefix(30) + Array(" - ".utf8) + shown.dropFirst(30),
    ]
    for typing in typings {
      let read = try BackupKey.privateKey(of: BackupFixture.secret(typing))
      let isSame = read == key
      #expect(isSame)
    }
  }

  /// Five bits of an X25519 key count for nothing: an error in one of those gives the same key.
  @Test func everyTypingErrorIsFound() throws {
    let key = try SealedFile.makePrivateKey()
    let publicKey = try SealedFile.publicKey(of: key)
    let shown = try text(key)
    let start = "keyhole-backup-private:".utf8.count
    for index in start..<shown.count {
      var typing = shown
      typing[index] = typing[index] == UInt8(ascii: "0") ? UInt8(ascii: "1") : UInt8(ascii: "0")
      guard let read = try? BackupKey.privateKey(of: BackupFixture.secret(typing)) else { continue }
      #expect(try SealedFile.publicKey(of: read) == publicKey, "digit \(index)")
    }
    for typing in [[], Array(shown.dropLast()), shown + [UInt8(ascii: "0")], Array("horse".utf8)] {
      #expect(throws: BackupError.self) { _ = try BackupKey.privateKey(of: BackupFixture.secret(typing)) }
    }
  }

  @Test func thePublicHalfIsKept() throws {
    let fixture = try BackupFixture()
    #expect(try BackupKey.publicKey(fixture.folders.settings) == nil)
    try BackupKey.keep(fixture.key, fixture.folders.settings)
    #expect(try BackupKey.publicKey(fixture.folders.settings) == fixture.key)
    #expect(try Files.status(BackupKey.path(fixture.folders.settings)).st_mode & 0o777 == 0o600)
  }

  @Test func aPublicHalfThatOthersMayHaveChangedIsRefused() throws {
    let fixture = try BackupFixture()
    try BackupKey.keep(fixture.key, fixture.folders.settings)
    let path = BackupKey.path(fixture.folders.settings)
    unsafe chmod(path, 0o622)
    #expect(throws: BackupError.self) { try BackupKey.publicKey(fixture.folders.settings) }
    unsafe chmod(path, 0o644)
    #expect(try BackupKey.publicKey(fixture.folders.settings) == fixture.key)
    let text = try Files.text(path)
    for index in text.indices.dropFirst("keyhole-backup-public:".count).dropLast() {
      var changed = text
      changed.replaceSubrange(index...index, with: text[index] == "0" ? "1" : "0")
      try Files.write(changed, to: path)
      #expect(throws: BackupError.self) { try BackupKey.publicKey(fixture.folders.settings) }
    }
  }
}
