package import Formats
package import Model
package import SecretMemory

/// The answer of a `credential_process` of the AWS CLI and SDKs: *Sourcing credentials with an external process*.
package struct AWSCredential {
  /// The identity of the item of a profile.
  package static func identity(profile: String) -> ItemIdentity {
    .generic(service: "aws", account: ExactString(profile))
  }

  /// The members of the answer, by the names of ~/.aws/credentials and of the answer itself.
  private enum Member: String, CaseIterable {
    case accessKey = "AccessKeyId"
    case secretKey = "SecretAccessKey"
    case sessionToken = "SessionToken"
    case expiration = "Expiration"
    case account = "AccountId"

    var nameInFile: String? {
      switch self {
      case .accessKey: "aws_access_key_id"
      case .secretKey: "aws_secret_access_key"
      case .sessionToken: "aws_session_token"
      case .expiration: nil
      case .account: "aws_account_id"
      }
    }
  }

  private var members: [Member: SecretSlice] = [:]

  /// Reads an item's secret: lines `aws_access_key_id = …` as in ~/.aws/credentials, or the JSON of an answer.
  ///
  /// - Throws: `FormatError` where one of the two keys is missing, or it is neither.
  package init(_ source: ByteSource) throws(FormatError) {
    let first = source.whole.first { ![0x20, 0x09, 0x0A, 0x0D].contains(source[$0]) }
    guard let first else { throw Self.missing }
    if source[first] == UInt8(ascii: "{") { try readJSON(source) } else { try readLines(source) }
    guard members[.accessKey]?.isEmpty == false, members[.secretKey]?.isEmpty == false else {
      throw Self.missing
    }
  }

  private static let missing = FormatError(
    "the secret has no access key: store the lines `aws_access_key_id = …` and `aws_secret_access_key = …`, as "
      + "~/.aws/credentials has them")

  private mutating func readJSON(_ source: ByteSource) throws(FormatError) {
    var scanner = JSONScanner(source)
    try scanner.members { (name, scanner) throws(FormatError) in
      guard let member = Member(rawValue: name) else {
        _ = try scanner.value()
        return
      }
      members[member] = try scanner.optionalString()
    }
    try scanner.end()
  }

  private mutating func readLines(_ source: ByteSource) throws(FormatError) {
    var start = 0
    while start < source.count {
      let end = (start..<source.count).first { source[$0] == 0x0A } ?? source.count
      try readLine(source, start..<end)
      start = end + 1
    }
  }

  private mutating func readLine(_ source: ByteSource, _ line: Range<Int>) throws(FormatError) {
    let line = Self.trimmed(source, line)
    guard let first = line.first, !"#;[".utf8.contains(source[first]) else { return }
    guard let equals = line.first(where: { source[$0] == UInt8(ascii: "=") }) else {
      throw FormatError("a line of the secret has no `=`")
    }
    let name = source.text(Self.trimmed(source, line.lowerBound..<equals))
    guard let member = Member.allCases.first(where: { $0.nameInFile == name && name != nil }) else { return }
    members[member] = SecretSlice(source, Self.trimmed(source, equals + 1..<line.upperBound))
  }

  private static func trimmed(_ source: ByteSource, _ range: Range<Int>) -> Range<Int> {
    let isBlank: (Int) -> Bool = { [0x20, 0x09, 0x0D].contains(source[$0]) }
    guard let first = range.first(where: { !isBlank($0) }), let last = range.last(where: { !isBlank($0) })
    else { return range.lowerBound..<range.lowerBound }
    return first..<last + 1
  }

  /// The answer: version 1, and the members that are there.
  package func answer() throws(FormatError) -> SecretBytes {
    try AnswerBytes.make { (sink) throws(FormatError) in
      try sink.write("{\"Version\":1")
      for member in Member.allCases {
        guard let slice = members[member], !slice.isEmpty else { continue }
        try sink.write(",\"\(member.rawValue)\":")
        let value = try slice.bytes()
        try sink.writeJSON(value.span)
      }
      try sink.write("}\n")
    }
  }
}
