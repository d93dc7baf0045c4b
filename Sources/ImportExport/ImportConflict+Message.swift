extension ImportConflict {
  /// For people: the first paths, and what takes them over.
  package var message: String {
    switch self {
    case .duplicates(let paths):
      "it holds different values for the same name: \(Self.list(paths)); nothing was imported"
        + " (--duplicates=number or merge takes items)"
    case .present(let paths):
      "other values are there already: \(Self.list(paths)); nothing was imported (--replace or --keep decides)"
    }
  }

  private static func list(_ paths: [String]) -> String {
    let shown = paths.prefix(3).joined(separator: ", ")
    return paths.count > 3 ? "\(shown) and \(paths.count - 3) more" : shown
  }
}
