import Control
import KeychainSelection
import Model
import Platform
import Store
import Tree

/// Words that complete a command line in a shell. An error gives none.
package enum Completion {
  /// Paths of the tree, of a mount, or relative to a folder in one; where there are none, the short names of items. Names only: whatever
  /// they lead to is never opened.
  ///
  /// `shortNames`: whether the command takes these.
  package static func paths(_ prefix: String, shortNames takesShortNames: Bool = true) -> [String] {
    let scalars = prefix.unicodeScalars
    let folder = scalars.lastIndex(of: "/").map { String(scalars[...$0]) } ?? ""
    var found = treePaths(in: folder).filter { $0.hasPrefix(prefix) }
    if takesShortNames, found.isEmpty, !prefix.isEmpty {
      found = shortNames(in: folder).filter { $0.hasPrefix(prefix) }
    }
    return found.map { ExactString($0) }.sorted().map(\.string)
  }

  /// `SERVICE/ACCOUNT`, in pieces as the folders of paths are, and items of the class `other` by their labels.
  private static func shortNames(in folder: String) -> [String] {
    let names = folder.unicodeScalars.split(separator: "/").map { String($0) }
    guard !folder.hasPrefix("/"), names.count < 2 else { return [] }
    let folders = ["keychain/generic", "keychain/internet"].flatMap { place in
      entries(in: TreePath(([place] + names).joined(separator: "/")))
    }
    guard let name = names.first else {
      return Array(Set(folders + entries(in: TreePath("keychain/other")).map(Self.withoutSlash)))
    }
    return Set(folders.map(withoutSlash)).map { "\(name)/\($0)" }
  }

  /// The item at the end of a path, as a word that is complete.
  private static func withoutSlash(_ name: String) -> String {
    name.hasSuffix("/") ? String(name.dropLast()) : name
  }

  private static func treePaths(in folder: String) -> [String] {
    guard let places = try? StoragePaths.ofMount() else { return [] }
    // A shell completes before it expands.
    if folder.hasPrefix("~/") {
      let home = places.home + "/"
      return treePaths(in: home + folder.dropFirst(2)).map { "~/" + $0.dropFirst(home.count) }
    }
    let surroundings = PathSurroundings.current(places)
    let top = entries(in: TreePath(folder)).map { folder + $0 }
    guard !PathLocation.isFull(folder) || folder.isEmpty else { return top }
    switch PathLocation(folder.isEmpty ? "./" : folder, surroundings) {
    case .tree(let path, .some), .relative(let path, _):
      let here = entries(in: path).map { folder + $0 }
      return folder.isEmpty ? here + top.filter { !here.contains($0) } : here
    case .tree(_, nil): return top
    case .outside, .short: return mountPoints(folder, surroundings, places)
    }
  }

  /// A mount point below a folder that is no part of one, so that a path into the mount can be typed at once.
  private static func mountPoints(
    _ folder: String, _ surroundings: PathSurroundings, _ places: StoragePaths
  ) -> [String] {
    guard folder.hasPrefix("/") else { return [] }
    return mounts(places).filter { $0.hasPrefix(folder) }.map { $0 + "/" }
  }

  private static func entries(in path: TreePath) -> [String] {
    guard let session = try? TreeSession(silentlyFor: path), let node = try? session.node(at: path),
      let entries = try? session.tree.list(node)
    else { return [] }
    return entries.map { $0.name + ($0.isDirectory ? "/" : "") }
  }

  private static func mounts(_ places: StoragePaths) -> [String] {
    MountRegistration.all(in: places.runtime).filter(\.isAlive).map(\.path)
  }

  /// The mount points of this user's mounts.
  package static func mountPoints(_ prefix: String) -> [String] {
    guard let places = try? StoragePaths.current() else { return [] }
    return mounts(places).filter { $0.hasPrefix(prefix) }.sorted()
  }

  /// The values that the setting of Keyhole before a word can have.
  package static func values(ofSettingBefore index: Int, in words: [String]) -> [String] {
    guard words.indices.contains(index - 1), let key = ConfigurationKey(rawValue: words[index - 1]) else {
      return []
    }
    switch key.definition.kind {
    case .bool: return ["true", "false"]
    case .word(let words): return words
    case .number, .program, .programs: return []
    }
  }

  /// The attributes of the path before a word.
  package static func attributes(ofPathBefore index: Int, in words: [String]) -> [String] {
    // Nothing that a person has not asked for may open a dialog.
    Environment.set("KEYHOLE_ASK_UNLOCK", to: "no")
    guard words.indices.contains(index - 1), let opened = try? OpenedPath(words[index - 1], .items),
      let node = try? opened.session.node(at: opened.path),
      let names = try? opened.session.tree.attributeNames(of: node)
    else { return [] }
    let known = [
      "user.keyhole.label", "user.keyhole.accessible", "user.keyhole.access", "user.keyhole.programs",
      "user.keyhole.eol", "user.keyhole.history", "user.comment",
    ]
    let all = opened.path.isSecret && !opened.path.isView ? Array(Set(names + known)).sorted() : names
    return all.map { String($0.dropFirst(5)) }
  }

  /// The values that the attribute before a word can have.
  package static func values(ofAttributeBefore index: Int, in words: [String]) -> [String] {
    guard words.indices.contains(index - 1) else { return [] }
    let name = words[index - 1]
    switch name.hasPrefix("user.") ? String(name.dropFirst(5)) : name {
    case "keyhole.type": return SettingType.allCases.map(\.rawValue)
    case "keyhole.accessible": return Accessibility.allCases.map(\.rawValue)
    case "keyhole.access": return AccessFlags.Flag.allCases.map(\.rawValue)
    case "keyhole.dialect": return ViewMaker.dialects
    case "keyhole.eol": return ["exact"]
    case "keyhole.sealed", "isInvisible", "isNegative": return ["true", "false"]
    default: return []
    }
  }

  /// Access flags behind those that are typed already.
  package static func accessFlags(_ prefix: String) -> [String] {
    next(AccessFlags.Flag.allCases.map(\.rawValue), in: prefix, separator: "|")
  }

  /// Mount options behind those that are typed already.
  package static func mountOptions(_ prefix: String) -> [String] {
    next(MountOptions.words, in: prefix, separator: ",")
  }

  /// A list may name each word once.
  private static func next(_ words: [String], in prefix: String, separator: Character) -> [String] {
    let typed = prefix.split(separator: separator, omittingEmptySubsequences: false).map(String.init)
    let before = typed.dropLast()
    let start = before.map { $0 + String(separator) }.joined()
    return words.filter { !before.contains($0) }.map { start + $0 }.filter { $0.hasPrefix(prefix) }
  }
}
