public import Model
public import Notifier

extension ChangeEvent {
  /// A change of the stores, with the paths of its subjects as they are in the tree right after it.
  public init(_ change: Change) {
    self.init(
      change.kind, path: change.subject.path(after: change.kind),
      from: change.previous?.path(after: change.kind), origin: change.origin)
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
    case .document(_, let name): name.string
    case .keychain: Place.keychain.path
    case .everything: ""
    }
  }
}
