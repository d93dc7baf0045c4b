import Model

/// A pattern of names: `*` stands for any text, `?` for one character, and a pattern without either for every name that
/// contains it. Upper and lower case are the same.
package struct NamePattern {
  private let pattern: [Character]

  package init(_ text: String) {
    let hasWildcard = text.contains("*") || text.contains("?")
    pattern = Array((hasWildcard ? text : "*\(text)*").lowercased())
  }

  /// Whether a name fits. The time is at most the product of both lengths.
  package func fits(_ name: String) -> Bool {
    let name = Array(name.lowercased())
    var (inName, inPattern) = (0, 0)
    var lastStar: (pattern: Int, name: Int)?
    while inName < name.count {
      if inPattern < pattern.count, pattern[inPattern] == "*" {
        lastStar = (inPattern, inName)
        inPattern += 1
      } else if inPattern < pattern.count, pattern[inPattern] == "?" || pattern[inPattern] == name[inName] {
        (inName, inPattern) = (inName + 1, inPattern + 1)
      } else if let star = lastStar {
        lastStar = (star.pattern, star.name + 1)
        (inPattern, inName) = (star.pattern + 1, star.name + 1)
      } else {
        return false
      }
    }
    return pattern[inPattern...].allSatisfy { $0 == "*" }
  }
}
