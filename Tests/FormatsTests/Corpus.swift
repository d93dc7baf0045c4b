import Formats
import Glibc
import ImportExport
import Model
import SecretMemory
import Suites

/// The files below `Corpus`: what other programs wrote, what follows their formats by hand, and what once crashed.
enum Corpus {
  private static let folder =
    String(#filePath.split(separator: "/").dropLast().map { "/" + $0 }.joined()) + "/Corpus"

  static func files(of parser: String) -> [(name: String, bytes: [UInt8])] {
    names(parser).map { ("\(parser)/\($0)", bytes("\(parser)/\($0)")) }
  }

  static func bytes(_ name: String) -> [UInt8] { file("\(folder)/\(name)") }

  static func write(_ bytes: [UInt8], to path: String) {
    // SAFETY: a variadic call with its one argument.
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    _ = unsafe bytes.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
  }

  static func file(_ path: String) -> [UInt8] {
    // SAFETY: a variadic call without its variable part.
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return [] }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      // SAFETY: the chunk says how long it is.
      let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
      guard count > 0 else { return bytes }
      bytes += chunk[..<count]
    }
  }

  private static func names(_ parser: String) -> [String] {
    guard let folder = unsafe opendir("\(folder)/\(parser)") else { return [] }
    defer { unsafe closedir(folder) }
    var names: [String] = []
    while let entry = unsafe readdir(folder) {
      names.append(
        unsafe withUnsafeBytes(of: &entry.pointee.d_name) {
          unsafe String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
        })
    }
    return names.filter { !$0.hasPrefix(".") }.sorted()
  }
}

/// Bytes as a parser gets them.
func source(_ bytes: some Sequence<UInt8>) throws -> ByteSource {
  var secret = try SecretBytes()
  let bytes = Array(bytes)
  try unsafe bytes.withUnsafeBytes { try unsafe secret.append($0) }
  return ByteSource(secret)
}

/// The same in pieces of a few bytes, so that everything lies across a border somewhere.
func pieces(_ bytes: [UInt8], of size: Int) throws -> ByteSource {
  try ByteSource(count: bytes.count, pieceSize: size) { (number) throws(FormatError) in
    let part = Array(bytes[(number * size)..<min(bytes.count, (number + 1) * size)])
    guard var secret = try? SecretBytes() else { throw FormatError("no memory") }
    unsafe part.withUnsafeBytes { try? unsafe secret.append($0) }
    return secret
  }
}

func reader(suite: ExactString? = nil, service: ExactString? = nil) -> ImportReader {
  ImportReader(propertyLists: PropertyLists(), paths: TreePaths(), suite: suite, service: service)
}

func text(_ slice: SecretSlice) throws -> String {
  let bytes = try slice.bytes()
  return unsafe bytes.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
}

extension Contents {
  /// An item a line: path, secret, attributes; a companion follows its item.
  func lines() throws -> [String] {
    var lines: [String] = []
    for item in items {
      let attributes = item.attributes.map {
        "\($0.name.dropFirst(5))=\(String(decoding: $0.value, as: UTF8.self))"
      }
      lines.append(
        "\(TreePaths.path(item.identity)) \(try text(item.secret)) [\(attributes.joined(separator: "|"))]")
      if let uri = item.otpauth {
        lines.append("  \(TreePaths.path(item.identity)) otpauth \(try text(uri))")
      }
      for companion in item.companions {
        lines.append(
          "  \(TreePaths.path(item.identity.companion(companion.name))) \(try text(companion.secret))")
      }
    }
    return lines + remarks.map { "- \($0)" }
  }
}
