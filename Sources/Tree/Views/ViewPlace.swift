import Model

/// A directory of views.
enum ViewFolder: String, Hashable, Sendable {
  /// The files that are made of items and settings.
  case views
  /// The texts of those that are made from a template.
  case templates
}

/// Where something stands below `views` or `templates`.
enum ViewPlace: Hashable, Sendable {
  case folder(ViewFolder)
  case file(ViewFolder, ExactString)
}

extension ViewPlace {
  var folder: ViewFolder {
    switch self {
    case .folder(let folder), .file(let folder, _): folder
    }
  }

  var parent: Place {
    switch self {
    case .folder: .root
    case .file(let folder, _): .view(.folder(folder))
    }
  }

  var isDirectory: Bool {
    if case .folder = self { true } else { false }
  }

  /// Names of views have nothing that is escaped.
  var name: String {
    switch self {
    case .folder(let folder): folder.rawValue
    case .file(_, let name): name.string
    }
  }
}
