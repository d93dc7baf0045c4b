import EtcdClient

extension KeyChange {
  /// The key that was changed.
  var key: [UInt8] {
    switch self {
    case .put(let value): value.key
    case .delete(let key, _): key
    }
  }
}
