import Model
import Platform

/// A JSON array on standard output, an object a line.
struct JSONList {
  private var isEmpty = true

  /// Fields in their order; the values are JSON texts.
  mutating func add(_ fields: [(name: String, value: String)]) {
    StandardOutput.write((isEmpty ? "[\n" : ",\n") + "  " + Self.object(fields))
    isEmpty = false
  }

  /// One object, in one line.
  static func object(_ fields: [(name: String, value: String)]) -> String {
    "{" + fields.map { "\($0.name.quotedAsJSON): \($0.value)" }.joined(separator: ", ") + "}"
  }

  /// Prints all of a list, or `[]`.
  static func print<Element>(
    _ elements: [Element], _ fields: (Element) -> [(name: String, value: String)]
  ) {
    var list = JSONList()
    for element in elements { list.add(fields(element)) }
    list.end()
  }

  func end() { StandardOutput.write(isEmpty ? "[]\n" : "\n]\n") }
}

extension [String] {
  /// A JSON array in one line.
  var json: String { "[" + map(\.quotedAsJSON).joined(separator: ", ") + "]" }
}
