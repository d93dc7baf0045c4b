import Model
import Tree

extension Failure {
  /// The error for an item without one-time codes.
  static func noCode(_ item: TreePath) -> Failure {
    Failure(
      item.string,
      "it has no `otpauth` URI to compute codes from; `keyhole otp --set \(item.string.quotedForShell)` stores one",
      .notFound)
  }
}

extension TreeSession {
  /// Folders with more entries are not searched for a similar name: the answer would take longer than the command.
  private static let mostEntries = 10_000

  /// A path that is there and differs from a missing one in the spelling of its names; nil: none does.
  ///
  /// `wholly`: only one with as many names; else what follows the last name that was found is left out.
  func likelyPath(_ path: TreePath, wholly: Bool = false) -> TreePath? {
    var (known, isChanged): ([String], Bool) = ([], wholly)
    for name in path.components {
      if (try? find((known + [name])[...])) != nil {
        known.append(name)
        continue
      }
      guard let similar = entry(like: name, in: known) else {
        guard !wholly, isChanged else { return nil }
        break
      }
      known.append(similar)
      isChanged = true
    }
    return isChanged && !known.isEmpty ? TreePath(components: known) : nil
  }

  private func entry(like name: String, in folder: [String]) -> String? {
    guard let node = try? find(folder[...]), node.isDirectory, let entries = try? tree.list(node),
      entries.count <= Self.mostEntries
    else { return nil }
    return Spelling.nearest(to: name, among: entries.map(\.name))
  }

  /// A failure of a missing path with the path that was probably meant.
  func spelled(_ failure: Failure, _ path: TreePath) -> Failure {
    guard failure.kind == .notFound else { return failure }
    if path.isOfCode, (try? find(path.parent.components[...])) != nil { return .noCode(path.parent) }
    let session =
      onlyKey == nil ? self : (try? TreeSession(silentlyFor: path, settingsOf: settingsMount)) ?? self
    guard let likely = session.likelyPath(path) else { return failure }
    return Failure(failure.subject, "there is no such file; did you mean \(likely.string)?", .notFound)
  }
}
