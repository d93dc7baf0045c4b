import Model
import Views

/// The paths of the tree, for the references of views.
struct TreePaths: ViewPaths {
  func source(at path: String) throws(StoreError) -> ViewSource {
    let names = path.unicodeScalars.split(separator: "/").map { Self.unescaped(String($0)) }
    if let source = try? item(names) ?? setting(names) { return source }
    throw .invalidValue(
      reason:
        "`\(path.escapedForTerminal)` is no reference: write `keychain/generic/SERVICE/ACCOUNT` or `defaults/SUITE/KEY`"
    )
  }

  private func item(_ names: [String]) throws(StoreError) -> ViewSource? {
    guard let (place, below) = try FileTree.itemPlace(in: names), below.isEmpty || Array(below) == ["value"]
    else { return nil }
    return place.identity.map { .item($0) }
  }

  private func setting(_ names: [String]) throws(StoreError) -> ViewSource? {
    guard names.count == 3, names[0] == Place.defaults.name,
      let suite = try PathName(lookingUp: names[1].utf8).plain,
      let key = try PathName(lookingUp: names[2].utf8).plain
    else { return nil }
    return .setting(suite: suite, key: key)
  }

  /// A name in which a reference of a template has escapes for what would end it: `|`, `}` and a blank at its end.
  private static func unescaped(_ name: String) -> String {
    let (percent, escapes) = (UInt8(ascii: "%"), ["%7C": "|", "%7D": "}", "%20": " "])
    guard name.utf8.contains(percent) else { return name }
    var (bytes, rest) = ([UInt8](), Array(name.utf8)[...])
    while let byte = rest.first {
      let escape = byte == percent ? escapes[String(decoding: rest.prefix(3), as: UTF8.self)] : nil
      bytes += escape.map { Array($0.utf8) } ?? [byte]
      rest = rest.dropFirst(escape == nil ? 1 : 3)
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  func path(of source: ViewSource) -> String {
    switch source {
    case .item(let identity): FileTree.path(of: identity)
    case .setting(let suite, let key): Place.key(KeyPlace(suite: suite, key: key)).path
    }
  }

  func checkName(_ name: String) throws(StoreError) {
    let path = try PathName(creating: name.utf8)
    guard path.plain?.string == name, !name.isEmpty, !ScratchName.isScratchInViews(name, of: []) else {
      throw .invalidName(
        reason:
          "a view's name has no slash, no percent sign, no dot at its beginning, and is not that of a temporary file"
      )
    }
  }
}

extension ScratchName {
  /// The names of files that programs write beside a view, to rename them over it: as in a suite, `tmp…`, `XX` with six letters
  /// or digits behind it (`perl -i`), and the name of a view with digits behind it.
  static func isScratchInViews(_ name: String, of views: [ExactString]) -> Bool {
    if isScratchInSuite(name.utf8) || name.hasPrefix("tmp") || name.hasSuffix(".tmp")
      || name.hasSuffix(".lock") || isPerlTemporary(name)
    {
      return true
    }
    return views.contains { view in
      guard name.hasPrefix(view.string) else { return false }
      var rest = name.utf8.dropFirst(view.utf8.count)
      if rest.first == UInt8(ascii: ".") { rest = rest.dropFirst() }
      return rest.count >= 6 && rest.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
  }

  private static func isPerlTemporary(_ name: String) -> Bool {
    let suffix = name.unicodeScalars.dropFirst(2)
    return name.hasPrefix("XX") && suffix.count == 6
      && suffix.allSatisfy { $0.isASCII && ($0.properties.isAlphabetic || ("0"..."9").contains($0)) }
  }
}
