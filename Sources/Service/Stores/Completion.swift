import Model
import Tree

/// Words that complete a command line in a shell. An error gives none.
package enum Completion {
  /// Paths of the tree: names only, whatever they lead to is never opened.
  package static func paths(_ prefix: String) -> [String] {
    let scalars = prefix.unicodeScalars
    let folder = scalars.lastIndex(of: "/").map { String(scalars[...$0]) } ?? ""
    let path = TreePath(folder)
    guard let session = try? TreeSession(silentlyFor: path), let node = try? session.node(at: path),
      let entries = try? session.tree.list(node)
    else { return [] }
    return entries.map { folder + $0.name + ($0.isDirectory ? "/" : "") }.filter { $0.hasPrefix(prefix) }
      .map { ExactString($0) }.sorted().map(\.string)
  }

  /// The attributes of the path before a word.
  package static func attributes(ofPathBefore index: Int, in words: [String]) -> [String] {
    guard words.indices.contains(index - 1) else { return [] }
    let path = TreePath(words[index - 1])
    guard let session = try? TreeSession(silentlyFor: path), let node = try? session.node(at: path),
      let names = try? session.tree.attributeNames(of: node)
    else { return [] }
    let known = ["user.keyhole.label", "user.keyhole.accessible", "user.keyhole.access", "user.comment"]
    return (path.isSecret ? Array(Set(names + known)).sorted() : names).map { String($0.dropFirst(5)) }
  }

  /// The values that the attribute before a word can have.
  package static func values(ofAttributeBefore index: Int, in words: [String]) -> [String] {
    guard words.indices.contains(index - 1) else { return [] }
    let name = words[index - 1]
    switch name.hasPrefix("user.") ? String(name.dropFirst(5)) : name {
    case "keyhole.type": return SettingType.allCases.map(\.rawValue)
    case "keyhole.accessible": return Accessibility.allCases.map(\.rawValue)
    case "keyhole.access": return AccessFlags.Flag.allCases.map(\.rawValue)
    case "keyhole.eol": return ["exact"]
    case "keyhole.sealed", "isInvisible", "isNegative": return ["true", "false"]
    default: return []
    }
  }
}
