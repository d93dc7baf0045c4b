/// The methods of etcd's API v3 that are called, as their paths.
enum EtcdMethod: String {
  case range = "/etcdserverpb.KV/Range"
  case transaction = "/etcdserverpb.KV/Txn"
  case compact = "/etcdserverpb.KV/Compact"
  case watch = "/etcdserverpb.Watch/Watch"
  case grantLease = "/etcdserverpb.Lease/LeaseGrant"
  case revokeLease = "/etcdserverpb.Lease/LeaseRevoke"
  case keepLeaseAlive = "/etcdserverpb.Lease/LeaseKeepAlive"
  case authenticate = "/etcdserverpb.Auth/Authenticate"
  case status = "/etcdserverpb.Maintenance/Status"

  /// Works without a token.
  var isOpen: Bool { self == .authenticate || self == .status }
}

/// A call of one method: one message each way.
struct EtcdCall {
  var method: EtcdMethod
  var message: [UInt8]
  /// It may change something: sent and not answered, it is not repeated.
  var isChange = false
  /// Only a server that knows a leader can do it.
  var needsLeader = true
}
