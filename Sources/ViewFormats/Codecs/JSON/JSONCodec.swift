import Platform
import SecretMemory

/// JSON, and docker's configuration in JSON.
struct JSONCodec: ViewCodec {
  /// Only the members that docker keeps secrets in are values.
  var isDockerConfig = false

  func entries(of text: Span<UInt8>) throws(ViewError) -> [ViewDocument.Entry] {
    var scanner = JSONScanner(text)
    try scanner.scan()
    var entries: [ViewDocument.Entry] = []
    for leaf in scanner.leaves {
      if let entry = try entry(leaf, text) { entries.append(entry) }
    }
    return entries
  }

  private func entry(_ leaf: JSONScanner.Leaf, _ text: Span<UInt8>) throws(ViewError) -> ViewDocument.Entry? {
    guard isDockerConfig else {
      return ViewDocument.Entry(
        name: leaf.path, line: leaf.line, range: leaf.range,
        coding: leaf.isString ? .jsonString : .jsonNumber,
        steps: leaf.steps)
    }
    guard leaf.isString, DockerConfig.isSecret(leaf.path) else { return nil }
    guard DockerConfig.isAuthentication(leaf.path) else {
      return ViewDocument.Entry(
        name: leaf.path, line: leaf.line, range: leaf.range, coding: .jsonString, steps: leaf.steps)
    }
    return try authentication(leaf, text)
  }

  /// nil: the string is empty, as docker leaves it where a helper has the password.
  private func authentication(
    _ leaf: JSONScanner.Leaf, _ text: Span<UInt8>
  ) throws(ViewError) -> ViewDocument.Entry? {
    guard leaf.range.count > 2 else { return nil }
    var writer = try SecretWriter(capacity: leaf.range.count)
    try Spelling.decode(text, from: leaf.range.lowerBound, leaf.steps, to: &writer)
    let user: [UInt8]
    do throws(ViewError) { user = try Base64Password.user(of: writer.finish()) } catch {
      throw ViewError(error.errno, line: leaf.line, entry: leaf.path, error.reason)
    }
    let bare = Array(user.dropLast())
    guard let name = bare.span.wellFormedText else {
      throw ViewError(.EILSEQ, line: leaf.line, entry: leaf.path, "the user is not UTF-8")
    }
    return ViewDocument.Entry(
      name: leaf.path + [name], line: leaf.line, range: leaf.range, coding: .basicAuthentication,
      steps: leaf.steps,
      user: user)
  }

  func write(
    _ value: Span<UInt8>, _ style: SlotStyle, to writer: inout SecretWriter
  ) throws(ViewError) -> String? {
    switch style.coding {
    case .jsonNumber:
      guard JSONNumber.end(of: value, from: 0) == value.count else {
        return "the value is no number of JSON; write a string into the file"
      }
      try writer.append(value)
    case .basicAuthentication:
      let text = try Base64Password.encode(value, user: style.user)
      try writeString(text.span, style, to: &writer)
    default:
      guard UTF8Text.isValid(value) else { return "the value is not UTF-8, which JSON requires" }
      try writeString(value, style, to: &writer)
    }
    return nil
  }

  private func writeString(
    _ value: Span<UInt8>, _ style: SlotStyle, to writer: inout SecretWriter
  ) throws(ViewError) {
    let start = writer.count
    if !style.spelling.isEmpty {
      if try Spelling.write(value, style.spelling, to: &writer), try isReadBack(value, writer, start) {
        return
      }
      writer.truncate(to: start)
    }
    try JSONString.write(value, to: &writer)
  }

  private func isReadBack(
    _ value: Span<UInt8>, _ writer: borrowing SecretWriter, _ start: Int
  ) throws(ViewError) -> Bool {
    try writer.withWritten(from: start) { (text) throws(ViewError) in
      guard text.count > 1, text[0] == UInt8(ascii: "\""), let string = try? JSONString.read(text, from: 0),
        string.end == text.count
      else { return false }
      var decoded = try SecretWriter(capacity: value.count)
      try Spelling.decode(text, from: 0, string.steps, to: &decoded)
      return decoded.hasSameBytes(as: value)
    }
  }

  // MARK: A new file

  func lay(out names: [[String]], into layout: inout FreshLayout) throws(ViewError) {
    var root = JSONObject()
    for (index, name) in names.enumerated() {
      let isAuthentication =
        isDockerConfig && name.count == 4 && DockerConfig.isAuthentication(Array(name.prefix(3)))
      guard !name.isEmpty, name.count < ViewLimits.depth,
        !isDockerConfig || isAuthentication || isStringName(name)
      else { throw ViewError(.EINVAL, entry: name, "docker has no secret of this name") }
      let style =
        isAuthentication
        ? SlotStyle(coding: .basicAuthentication, user: Array(name[3].utf8) + [UInt8(ascii: ":")])
        : SlotStyle(coding: .jsonString)
      guard root.add(isAuthentication ? name[...2] : name[...], index, style) else {
        throw ViewError(.EINVAL, entry: name, "another name is a part of it")
      }
    }
    try root.write(to: &layout, indentation: "")
    try layout.write("\n")
  }

  private func isStringName(_ name: [String]) -> Bool {
    DockerConfig.isSecret(name) && !DockerConfig.isAuthentication(name)
  }
}

/// Where docker's configuration has secrets.
enum DockerConfig {
  static func isAuthentication(_ path: [String]) -> Bool {
    path.count == 3 && path[0] == "auths" && path[2] == "auth"
  }

  static func isSecret(_ path: [String]) -> Bool {
    if path.count == 3, path[0] == "auths" {
      return ["auth", "password", "identitytoken", "registrytoken"].contains(path[2].lowercased())
    }
    return path.count == 2 && path[0] == "HttpHeaders"
  }
}

/// An object that is made from name paths, in their order.
private struct JSONObject {
  private indirect enum Member {
    case value(Int, SlotStyle)
    case object(JSONObject)
  }

  private var names: [String] = []
  private var members: [String: Member] = [:]

  /// False: the path is taken, or goes through a value. At most `ViewLimits.depth` deep.
  mutating func add(_ path: ArraySlice<String>, _ index: Int, _ style: SlotStyle) -> Bool {
    guard let name = path.first else { return false }
    let rest = path.dropFirst()
    switch members[name] {
    case .value: return false
    case .object(var object):
      guard !rest.isEmpty else { return false }
      members[name] = nil
      defer { members[name] = .object(object) }
      return object.add(rest, index, style)
    case nil:
      names.append(name)
      guard !rest.isEmpty else {
        members[name] = .value(index, style)
        return true
      }
      var object = JSONObject()
      defer { members[name] = .object(object) }
      return object.add(rest, index, style)
    }
  }

  func write(to layout: inout FreshLayout, indentation: String) throws(ViewError) {
    guard !names.isEmpty else { return try layout.write("{}") }
    var separator = "{\n"
    for name in names {
      try layout.write(separator + indentation + "  ")
      try JSONString.write(Array(name.utf8).span, to: &layout.text)
      try layout.write(": ")
      switch members[name] {
      case .value(let index, let style): layout.place(index, style)
      case .object(let object): try object.write(to: &layout, indentation: indentation + "  ")
      case nil: break
      }
      separator = ",\n"
    }
    try layout.write("\n" + indentation + "}")
  }
}
