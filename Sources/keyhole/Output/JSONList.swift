import Model
import Platform

/// A JSON array on standard output, an object a line.
struct JSONList {
  private var isEmpty = true

  /// Fields in their order; the values are JSON texts.
  mutating func add(_ fields: [(name: String, value: String)]) {
    let object = fields.map { "\($0.name.quotedAsJSON): \($0.value)" }.joined(separator: ", ")
    StandardOutput.write((isEmpty ? "[\n" : ",\n") + "  {\(object)}")
    isEmpty = false
  }

  func end() { StandardOutput.write(isEmpty ? "[]\n" : "\n]\n") }
}
