public import Model

/// A change of the stores by the paths of the tree.
public struct ChangeEvent: Hashable, Sendable {
  /// The kind of the change: the `kind` of the line.
  public var kind: Change.Kind
  /// From the top of the tree, without a leading slash; empty: everything.
  public var path: String
  /// Where it was before, if it was moved.
  public var from: String?
  /// This process or another one.
  public var origin: Change.Origin

  /// `from`: where it was before, if it was moved.
  public init(_ kind: Change.Kind, path: String, from: String? = nil, origin: Change.Origin) {
    self.kind = kind
    self.path = path
    self.from = from
    self.origin = origin
  }

  static let overflow = ChangeEvent(.overflow, path: "", origin: .external)

  /// One line of JSON, as SPECIFICATION.md, section 9 has it.
  public func line(number: Int, time: Timestamp) -> String {
    var fields = [
      "\"seq\":\(number)", "\"time\":\"\(time.iso8601)\"", "\"kind\":\"\(kind.rawValue)\"",
      "\"path\":\(path.quotedAsJSON)",
    ]
    if let from { fields.append("\"from\":\(from.quotedAsJSON)") }
    fields.append("\"origin\":\"\(origin == .external ? "external" : "mount")\"")
    return "{\(fields.joined(separator: ","))}\n"
  }
}
