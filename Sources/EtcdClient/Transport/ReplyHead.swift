/// The headers and trailers of a reply, as far as a call needs them.
struct ReplyHead {
  private(set) var isHTTP2 = false
  private(set) var httpStatus = 0
  /// The result of the call (https://grpc.io/docs/guides/status-codes/); nil: none was sent, so the call did not end regularly.
  private(set) var status: Int?
  private(set) var message = ""

  /// A message is for a person: what is longer is cut.
  private static let longestMessage = 1000

  /// Takes a line as it was received: a status line, or a header or trailer.
  mutating func take(_ line: some Collection<UInt8>) {
    let text = String(decoding: line, as: UTF8.self)
    if text.hasPrefix("HTTP/") {
      let words = text.split(whereSeparator: \.isWhitespace)
      self = ReplyHead()
      isHTTP2 = words.first == "HTTP/2"
      httpStatus = words.dropFirst().first.flatMap { Int($0) } ?? 0
      return
    }
    guard let colon = text.firstIndex(of: ":") else { return }
    let value = text[text.index(after: colon)...].drop { $0 == " " }.prefix { !$0.isNewline }
    switch text[..<colon].lowercased() {
    // A status that is no number is none.
    case "grpc-status": status = Int(value).flatMap { $0 >= 0 ? $0 : nil }
    case "grpc-message": message = Self.decoded(value.utf8.prefix(Self.longestMessage * 3))
    default: break
    }
  }

  /// Percent-encoded UTF-8, without what could change a terminal.
  private static func decoded(_ text: some Sequence<UInt8>) -> String {
    var rest = Array(text)[...]
    var bytes: [UInt8] = []
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%"), rest.count >= 2,
        let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
      {
        rest = rest.dropFirst(2)
        bytes.append(value)
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes.prefix(longestMessage), as: UTF8.self).withoutControlCharacters
  }
}

extension String {
  /// For text of a server in a message.
  var withoutControlCharacters: String {
    let kept = unicodeScalars.filter { $0.value >= 0x20 && !(0x7F..<0xA0).contains($0.value) }
    return String(String.UnicodeScalarView(kept))
  }
}
