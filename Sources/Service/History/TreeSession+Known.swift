import Model
import Tree

extension TreeSession {
  /// Refuses a path of which there is nothing, and of which nothing is kept: it may be misspelt.
  ///
  /// - Throws: `Failure` with the paths that were probably meant.
  package func requireKnown(_ path: TreePath) throws {
    let known = path.parent.isItem ? path.parent : path.view.map { TreePath($0.string) } ?? path
    do {
      guard try existingNode(at: known) == nil else { return }
    } catch let failure as Failure where failure.kind == .notFound {}
    let hint = Spelling.question(likelyNames(of: known)).map { "; \($0)" } ?? ""
    throw Failure(
      path.string, "there is nothing of this name, and no earlier version of it\(hint)", .notFound)
  }

  /// Of what is there, and of what is kept.
  private func likelyNames(of path: TreePath) -> [String] {
    let present = likelyPath(path, wholly: true)?.string
    let kept = (try? pathsWithHistory(below: TreePath(path.components.first ?? ""))) ?? []
    let nearest = Spelling.nearest(to: path.string, among: kept)
    return [present, nearest == present ? nil : nearest].compactMap { $0 }
  }
}
