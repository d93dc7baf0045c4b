import ClusterRecords
import EtcdClient
package import Model
import Store

extension StoreError {
  /// The error that callers of an engine get.
  init(_ error: ClusterError) {
    switch error {
    case .unavailable(let reason): self = .unreachable(reason: "\(Self.noAnswer): \(reason)")
    case .outcomeUnknown(let reason):
      self = .unreachable(
        reason: "\(Self.unknownOutcome) (\(reason)); look before you try again")
    case .compacted: self = .unreachable(reason: "what was to be read is not kept any more")
    case .noSpace: self = .noSpace
    case .tooLarge: self = .tooLarge(limit: ClusterFormat.largestTransaction)
    case .unauthorized(let reason): self = .accessDenied(reason: "the cluster refuses the user: \(reason)")
    case .wrongCluster(let reason): self = .readOnly(reason: reason)
    case .refused(let reason): self = .unreachable(reason: "the cluster refuses it: \(reason)")
    }
  }

  /// The beginning of the reason where the servers, or a majority of them, said nothing.
  static let noAnswer = "the cluster does not answer"

  /// Whether the cluster did not answer; else it did, or nothing was asked.
  package var isNoAnswer: Bool {
    if case .unreachable(let reason) = self { reason.hasPrefix(Self.noAnswer) } else { false }
  }

  private static let unknownOutcome = "the cluster did not say whether the change was made"

  /// Whether a change may have been made that failed with this error.
  var isOutcomeUnknown: Bool {
    if case .unreachable(let reason) = self { reason.hasPrefix(Self.unknownOutcome) } else { false }
  }
}

extension ClusterSession {
  /// The problem that a refusal is, with its remedy; nil: there is none.
  func problem(of refusal: ClusterError?) -> Problem? {
    guard let refusal else { return nil }
    if case .wrongCluster(let reason) = refusal {
      return Problem(
        subject: "the cluster", reason: reason,
        remedy: "if it was restored on purpose, `keyhole cluster accept` takes it as it is")
    }
    return Problem(
      subject: "the cluster", reason: StoreError(refusal).message,
      remedy: "look at `etcd-cert=` or `etcd-user=`, and at what the role may do: `etcdctl role get`")
  }
}
