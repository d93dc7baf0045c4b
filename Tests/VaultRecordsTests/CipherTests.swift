import Crypto
import Model
import Platform
import SecretMemory
import StoreConformance
import Testing

@testable import VaultRecords

/// Seals open in the place that they were made for, under their key, and as a whole only.
@Suite struct CipherTests {
  private let key = SymmetricKey(size: .bits256)
  private let binding: [UInt8] = [1, 2, 3]

  @Test func paddingHidesTheLengthAndCostsLittle() {
    #expect(Padding.padded(0) == 32 && Padding.padded(33) == 64 && Padding.padded(256) == 256)
    for size in [257, 1000, 4097, 1 << 20] {
      let padded = Padding.padded(size)
      #expect(padded >= size && Double(padded) <= Double(size) * 1.12 && Padding.padded(padded) == padded)
    }
  }

  @Test(arguments: [0, 1, 27, 28, 29, 252, 253, 5000]) func contentComesBack(count: Int) throws {
    let content = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
    let sealed = Array(try Cipher.seal(content, under: key, boundTo: binding))
    #expect(sealed.count == 12 + Padding.padded(count + 4) + 16)
    #expect(try Cipher.open(sealed, under: key, boundTo: binding) { $0.array } == content)
  }

  @Test(arguments: ["", "a", "a secret of more than thirty-two bytes"]) func secretComesBack(text: String)
    throws
  {
    let secret = try KeychainSamples.secret(text)
    let padded = try Cipher.box(Cipher.seal(secret: secret, under: key, boundTo: binding))
    #expect(try Cipher.openSecret(padded, under: key, boundTo: binding) == secret)
    let unpadded = try Cipher.box(Cipher.seal(unpadded: secret, under: key, boundTo: binding))
    #expect(try Cipher.openUnpadded(unpadded, under: key, boundTo: binding) == secret)
  }

  @Test func keysComeBackInTheirNumberOnly() throws {
    let keys = [SymmetricKey(size: .bits256), SymmetricKey(size: .bits256)]
    let sealed = Array(try Cipher.seal(keys: keys, under: key, boundTo: binding))
    #expect(try Cipher.openKeys(sealed, 2, under: key, boundTo: binding) == keys)
    #expect(throws: StoreError.damaged(what: "key")) {
      try Cipher.openKeys(sealed, 1, under: key, boundTo: binding)
    }
  }

  @Test func anotherPlaceKeyOrByteOpensNothing() throws {
    let sealed = Array(try Cipher.seal([7], under: key, boundTo: binding))
    let damaged = StoreError.damaged(what: "seal")
    #expect(throws: damaged) { try Cipher.open(sealed, under: key, boundTo: [1, 2]) { $0.array } }
    #expect(throws: damaged) {
      try Cipher.open(sealed, under: SymmetricKey(size: .bits256), boundTo: binding) { $0.array }
    }
    for index in sealed.indices {
      var changed = sealed
      changed[index] ^= 1
      #expect(throws: damaged) { try Cipher.open(changed, under: key, boundTo: binding) { $0.array } }
    }
    for count in [0, 12, 28, sealed.count - 1] {
      #expect(throws: damaged) {
        try Cipher.open(Array(sealed.prefix(count)), under: key, boundTo: binding) { $0.array }
      }
    }
  }
}
