internal import Model

/// The last level of an internet password: the account, then the parts of its identity that are present.
///
/// `peter;domain=…;protocol=ssh;auth=httpBasic;port=8080;path=…`, in this order. Each part is encoded as a
/// name is, `;` too; a part that is present and empty is `%`, as an empty name.
struct InternetLeaf {
  private static let words = ["domain", "protocol", "auth", "port", "path"]

  private let account: ExactString
  /// The values of `words`, nil where they are absent.
  private let parts: [ExactString?]

  init(_ identity: InternetIdentity) {
    account = identity.account
    let port = identity.port.map { ExactString($0.description) }
    parts = [identity.domain, identity.protocol, identity.authenticationType, port, identity.path]
  }

  /// Reads a leaf; nil where a part is unknown, repeated or out of order, or the port is no canonical number.
  init?(encoded: String) {
    let pieces = encoded.utf8.split(separator: PathNameCoding.semicolon, omittingEmptySubsequences: false)
    guard let first = pieces.first, let account = PathNameCoding.decode(first) else { return nil }
    guard let parts = Self.parts(of: pieces.dropFirst()) else { return nil }
    guard parts[3].map(Self.isPort) ?? true else { return nil }
    self.account = account
    self.parts = parts
  }

  /// Reads a name of that level; nil for a cut or disambiguated one.
  init?(_ name: PathName) {
    guard !name.hasDigest else { return nil }
    self.init(encoded: name.string)
  }

  /// The leaf as a path has it, before it is cut.
  var encoded: String {
    zip(Self.words, parts).reduce(PathNameCoding.encode(part: account, isFirst: true)) { leaf, part in
      guard let value = part.1 else { return leaf }
      return leaf + ";\(part.0)=" + PathNameCoding.encode(part: value, isFirst: false)
    }
  }

  /// The leaf without its escapes, which is what the digest of a cut one is made of.
  var plain: ExactString {
    let named = zip(Self.words, parts).compactMap { word, value in value.map { ";\(word)=\($0)" } }
    return ExactString(account.string + named.joined())
  }

  var pathName: PathName { PathName(encoded: encoded, of: plain) }

  func identity(server: ExactString) -> InternetIdentity {
    InternetIdentity(
      server: server, account: account, domain: parts[0], protocol: parts[1],
      authenticationType: parts[2], port: parts[3].flatMap { UInt16($0.string) }, path: parts[4])
  }
}

extension InternetLeaf {
  private static func parts(of pieces: some Sequence<Substring.UTF8View>) -> [ExactString?]? {
    var parts = [ExactString?](repeating: nil, count: words.count)
    var next = 0
    for piece in pieces {
      guard let (word, value) = part(piece), word >= next else { return nil }
      parts[word] = value
      next = word + 1
    }
    return parts
  }

  private static func part(_ piece: Substring.UTF8View) -> (word: Int, value: ExactString)? {
    guard let equals = piece.firstIndex(of: UInt8(ascii: "=")) else { return nil }
    guard let word = words.firstIndex(where: { piece[..<equals].elementsEqual($0.utf8) }) else { return nil }
    let value = piece[piece.index(after: equals)...]
    return PathNameCoding.decode(value).map { (word, $0) }
  }

  private static func isPort(_ text: ExactString) -> Bool {
    UInt16(text.string).map { ExactString($0.description) } == text
  }
}
