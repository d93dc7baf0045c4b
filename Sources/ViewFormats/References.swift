import Platform

/// The paths that may be the source of a value.
enum References {
  /// A path as a reference in a text has it: with escapes for what would end it there.
  static func escaped(_ path: String) -> String {
    var text = ""
    for scalar in path.unicodeScalars {
      switch scalar {
      case "|": text += "%7C"
      case "}": text += "%7D"
      default: text.unicodeScalars.append(scalar)
      }
    }
    return text.unicodeScalars.last == " " ? String(text.dropLast()) + "%20" : text
  }

  /// - Throws: `ELOOP` for a view or a template, `EINVAL` for a path that is empty.
  static func check(_ path: String, entry: [String], line: Int? = nil) throws(ViewError) {
    let parts = path.split(separator: "/").filter { $0 != "." }
    guard let first = parts.first else {
      throw ViewError(
        .EINVAL, line: line, entry: entry, "a reference is empty; write the path of an item or a setting")
    }
    if first == "views" || first == "templates" {
      throw ViewError(
        .ELOOP, line: line, entry: entry,
        "a reference leads to a view or a template, and can lead to an item or a setting only; name the items themselves"
      )
    }
  }
}
