import Model
import Testing

@Suite struct SHA256HasherTests {
  /// NIST: "Examples with intermediate values", FIPS 180-4, and the vectors of the Cryptographic Algorithm Validation
  /// Program (SHA256ShortMsg).
  @Test(arguments: [
    ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
    (
      "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
      "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"
    ),
  ])
  func digestsAreNISTs(text: String, digest: String) {
    #expect(hexadecimal(SHA256Hasher.hash(Array(text.utf8))) == digest)
  }

  @Test(
    arguments: [
      ([0xD3], "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1"),
      ([0x11, 0xAF], "5ca7133fa735326081558ac312c620eeca9970d1e70a4b95533d956f072d1f98"),
      ([0x74, 0xBA, 0x25, 0x21], "b16aa56be3880d18cd41e68384cf1ec8c17680c45a02b1575dc1518923ae8b0e"),
    ] as [([UInt8], String)])
  func digestsOfBytesAreNISTs(bytes: [UInt8], digest: String) {
    #expect(hexadecimal(SHA256Hasher.hash(bytes)) == digest)
  }

  @Test func aMillionBytesInPiecesAreOneMessage() {
    var hasher = SHA256Hasher()
    let piece = [UInt8](repeating: UInt8(ascii: "a"), count: 997)
    for _ in 0..<1003 { hasher.update(piece.span) }
    hasher.update(piece.span.extracting(..<(1_000_000 - 997 * 1003)))
    #expect(
      hexadecimal(hasher.finalize()) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
  }

  /// Around the end of a block, where the padding needs one more. `printf 'a%.0s' {1..N} | sha256sum`
  @Test(arguments: [
    (55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"),
    (56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"),
    (63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"),
    (64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"),
    (65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"),
    (119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb"),
    (120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c"),
  ])
  func lengthsAroundABlock(count: Int, digest: String) {
    let bytes = [UInt8](repeating: UInt8(ascii: "a"), count: count)
    #expect(hexadecimal(SHA256Hasher.hash(bytes)) == digest)
  }

  @Test func whereAMessageIsSplitDoesNotCount() {
    let bytes = (0..<200).map { UInt8($0) }
    let whole = SHA256Hasher.hash(bytes)
    for split in bytes.indices {
      var hasher = SHA256Hasher()
      hasher.update(bytes.span.extracting(..<split))
      hasher.update(bytes.span.extracting(split...))
      #expect(hasher.finalize() == whole, "split at \(split)")
    }
  }

  private func hexadecimal(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
