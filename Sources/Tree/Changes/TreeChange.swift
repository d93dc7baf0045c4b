public import Model

/// A change of the stores as it shows in the tree.
public struct TreeChange: Hashable, Sendable {
  /// The kind of the change: the `kind` of the line.
  public var kind: Change.Kind
  /// From the top of the tree, without a leading slash; empty: everything.
  public var path: String
  /// Where it was before, if it was moved.
  public var from: String?
  /// This process or another one.
  public var origin: Change.Origin

  static let overflow = TreeChange(Change(.overflow, .everything, origin: .external))

  /// The paths of a change's subjects, as they were right after it.
  public init(_ change: Change) {
    kind = change.kind
    path = change.subject.path(after: change.kind)
    from = change.previous?.path(after: change.kind)
    origin = change.origin
  }

  /// One line of JSON, as SPECIFICATION.md, section 9 has it.
  public func line(number: Int, time: Timestamp) -> String {
    var fields = [
      "\"seq\":\(number)", "\"time\":\"\(time.iso8601)\"", "\"kind\":\"\(kind.rawValue)\"",
      "\"path\":\(path.quotedAsJSON)",
    ]
    if let from { fields.append("\"from\":\(from.quotedAsJSON)") }
    fields.append("\"origin\":\"\(origin == .local ? "mount" : "external")\"")
    return "{\(fields.joined(separator: ","))}\n"
  }
}

extension Change.Subject {
  /// An item that is moved, or whose attributes change, is its directory; else it is the file with its secret.
  fileprivate func path(after kind: Change.Kind) -> String {
    switch self {
    case .suite(let name): Place.suite(name).path
    case .key(let suite, let key): Place.key(KeyPlace(suite: suite, key: key)).path
    case .item(_, let identity) where kind == .moved || kind == .attributes:
      Place.item(ItemPlace(identity)).path
    case .item(_, let identity): Place.value(ItemPlace(identity)).path
    case .otpauth(_, let identity): Place.otpauth(ItemPlace(identity)).path
    case .keychain: Place.keychain.path
    case .everything: ""
    }
  }
}
