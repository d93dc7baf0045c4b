import EtcdHarness
import Foundation

/// etcdctl, as someone uses it who may read and write the cluster.
struct Etcdctl {
  /// A key and its value as they are stored.
  struct Stored: Hashable {
    var key: String
    /// In base64.
    var value: String
  }

  private struct Reply: Decodable {
    struct Pair: Decodable {
      var key: Data
      var value: Data?
    }
    var kvs: [Pair]?
  }

  let nodes: EtcdNodes

  init(_ nodes: EtcdNodes) { self.nodes = nodes }

  /// `etcdctl get --prefix`.
  func get(_ prefix: String) throws -> [Stored] {
    let text = try nodes.etcdctl("get --prefix -w json \(prefix)")
    let pairs = try JSONDecoder().decode(Reply.self, from: Data(text.utf8)).kvs ?? []
    return pairs.map {
      Stored(key: String(decoding: $0.key, as: UTF8.self), value: ($0.value ?? Data()).base64EncodedString())
    }
  }

  /// `etcdctl put`.
  func put(_ key: String, _ value: String) throws {
    let file = nodes.folder + "/value"
    try Program.run(["/bin/sh", "-c", "base64 -d > \"$0\"", file], input: value)
    try nodes.etcdctl("put \(key) < \(file)")
  }

  /// `etcdctl del`.
  func delete(_ key: String) throws { try nodes.etcdctl("del \(key)") }
}
