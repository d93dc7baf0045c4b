/// A cluster, and how far its history was seen.
package struct ClusterMark: Hashable, Sendable {
  package var cluster: UInt64
  package var revision: Int64

  package init(cluster: UInt64, revision: Int64) {
    (self.cluster, self.revision) = (cluster, revision)
  }
}

extension ClusterError {
  fileprivate static let otherCluster = "another cluster answers"

  /// Whether another cluster answers than the one that was seen; false: one that was set back, or another error.
  package var isOfOtherCluster: Bool {
    guard case .wrongCluster(let reason) = self else { return false }
    return reason.hasPrefix(Self.otherCluster)
  }
}

/// Compares what replies say of their cluster with what was seen before.
struct ClusterIdentity {
  /// nil: no reply was seen yet.
  private(set) var mark: ClusterMark?

  init(_ mark: ClusterMark?) {
    self.mark = mark
  }

  /// Takes the header of a reply. `seen`: what had been seen when the call began, if the reply can't be older than that because
  /// a majority has agreed to it; nil: one server has answered, which may lag behind.
  ///
  /// - Throws: `wrongCluster`.
  mutating func take(_ header: ClusterHeader, notBefore seen: ClusterMark?) throws(ClusterError) {
    if let mark, mark.cluster != header.cluster {
      throw .wrongCluster(
        "\(ClusterError.otherCluster): \(hex(header.cluster)) in place of \(hex(mark.cluster))")
    }
    if let seen, header.revision < seen.revision {
      throw .wrongCluster(
        "the cluster was set back: it is at revision \(header.revision), and was at \(seen.revision) before")
    }
    let revision = max(mark?.revision ?? 0, header.revision)
    mark = ClusterMark(cluster: header.cluster, revision: revision)
  }

  /// As etcdctl shows it.
  private func hex(_ number: UInt64) -> String { String(number, radix: 16) }
}
