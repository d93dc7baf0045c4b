import Platform
import Testing

/// Text and hashes of bytes in a row.
@Suite struct SpanBytesTests {
  @Test(arguments: ["größe", "", "a\u{0}b"])
  func textOfUTF8IsRead(text: String) {
    #expect(text.utf8.span.text == text)
    #expect(text.utf8.span.wellFormedText == text)
  }

  @Test(arguments: [[0x61, 0xFF], [0xC3], [0xED, 0xA0, 0x80]] as [[UInt8]])
  func wrongBytesAreNoText(bytes: [UInt8]) {
    #expect(bytes.span.wellFormedText == nil)
    #expect(bytes.span.text.contains("\u{FFFD}"))
  }

  @Test func sameBytesHaveTheSameHash() {
    func hash(_ bytes: [UInt8]) -> Int {
      var hasher = Hasher()
      hasher.combine(bytes: bytes.span)
      return hasher.finalize()
    }
    #expect(hash([1, 2, 3]) == hash([1, 2, 3]))
    #expect(hash([1, 2, 3]) != hash([1, 2, 4]))
  }
}
