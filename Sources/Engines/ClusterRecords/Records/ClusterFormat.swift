/// The version of the format in a cluster.
package enum ClusterFormat {
  /// The first bytes of every binding and of every HKDF info.
  package static let prefix = "keyhole/c1"
  /// The first byte of every sealed value.
  package static let version: UInt8 = 1
  /// The largest value of a setting, and the largest secret, in bytes.
  package static let largestValue = 1 << 20
  /// The most operations of one transaction that etcd takes by default (`--max-txn-ops`).
  package static let mostOperations = 128
  /// The most bytes of one transaction: etcd takes 1.5 MiB by default (`--max-request-bytes`), keys and conditions included.
  package static let largestTransaction = 1_400_000

  /// The HKDF info of the key with this name.
  static func info(_ name: String) -> [UInt8] { Array("\(prefix)/\(name)".utf8) }
}
