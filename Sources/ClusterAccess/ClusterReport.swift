package import Cluster
import ClusterRecords
import EtcdClient
package import Model
package import Store
import VaultRecords

/// The state of a mount's cluster, for `keyhole status` and `keyhole doctor`.
package struct ClusterReport: Sendable {
  /// How things are, the worst first.
  package enum Condition: String, CaseIterable, Sendable {
    /// Members have seen different histories.
    case forked
    /// Members have seen what is not shown here.
    case withheld
    /// Another cluster answers than before.
    case otherCluster = "other-cluster"
    /// The cluster was set back behind what this device has seen.
    case setBack = "set-back"
    /// The contents do not fit together, and are shown as they were last.
    case refused
    /// This device was removed, or was never approved.
    case removed
    /// This device has not confirmed the store's code, or has lost its state folder.
    case unconfirmed
    /// The cluster refuses the certificate, the user or the password.
    case accessDenied = "access-denied"
    /// The cluster does not answer, and is asked again and again.
    case reconnecting
    /// The cluster's quota is used up: nothing can be stored.
    case full = "no-space"
    /// This device was not unlocked yet.
    case locked
    case connected
  }

  package let condition: Condition
  /// Since when the cluster was not heard; nil: it is.
  package let silence: Timestamp?
  /// When a server was heard last; nil: not yet.
  package let heard: Timestamp?
  package let address: String
  /// This device's number in the list of members.
  package let device: String
  /// When each other member has last said what it had seen.
  package let lastSights: [(member: String, time: Timestamp)]
  /// The members among them whose record the cluster does not show any more.
  private let missingSights: [String]
  /// When they were compared; nil: not yet.
  package let compared: Timestamp?
  package let isEncrypted: Bool
  /// The versions of the servers' programs, where they were asked.
  package let versions: [String]
  /// The state of the copy of the keychain on this device; nil: none is kept.
  package let offline: OfflineState?
  /// The reason for the condition, as a clause; empty: the condition says it.
  package let reason: String
  /// How many parts of changes that are too large for one transaction are in a journal: they hold, and the next change brings them into
  /// the entries of what they change.
  package let journalled: Int
  /// A rotation of the keys was begun and is not finished.
  package let isRotating: Bool
  /// The list of members is followed by entries that no member has signed.
  package let hasStrayEntries: Bool
  /// The beginning of the store's keys in the cluster.
  private let prefix: String
  /// The remedy of what is refused.
  private let remedy: String

  init(
    _ opened: OpenedCluster, _ failure: StoreError?, _ comparison: SightsComparison, isRotating: Bool
  ) {
    (address, device) = (opened.address.text, opened.store.device.text)
    isEncrypted = opened.address.security != nil
    let followed = [opened.suites.silence, opened.keychain.silence].compactMap { $0 }.min()
    let refusal = opened.silenceNow()
    heard = opened.heard
    let offline = opened.store.session.offline?.report
    self.offline = offline
    silence = followed ?? (refusal == nil ? nil : heard ?? offline?.time ?? .now)
    lastSights = comparison.lastSights.map { ($0.key.text, $0.value) }.sorted { $0.member < $1.member }
    missingSights = comparison.missing.map(\.text).sorted()
    compared = comparison.time
    journalled = opened.suites.journalled + opened.keychain.journalled
    let problems = opened.suites.problems() + opened.keychain.problems()
    // The keys that this process has may be those of before the end of a rotation.
    self.isRotating = isRotating && opened.store.isRotating
    prefix = opened.store.session.paths.prefix
    hasStrayEntries = comparison.hasStrayEntries
    let hasUnread = opened.store.session.readingFailure != nil
    if !problems.isEmpty || opened.store.isRotating || hasUnread { opened.lookAgainLater() }
    remedy =
      problems.first?.remedy
      ?? (hasUnread
        ? "it is read again by itself. Where that goes on, look at what is stored beside Keyhole's own: `etcdctl get --prefix --keys-only \(prefix)`"
        : "")
    (condition, reason) = Self.judge(opened, failure, comparison, refusal, silence, problems)
    versions = opened.versions
  }

  private static func judge(
    _ opened: OpenedCluster, _ failure: StoreError?, _ comparison: SightsComparison, _ refusal: ClusterError?,
    _ silence: Timestamp?, _ problems: [Problem]
  ) -> (Condition, String) {
    if let found = comparison.findings.first(where: { $0.comparison == .isForked }) {
      return (.forked, "device \(found.member.text) has seen another history")
    }
    if let found = comparison.findings.first(where: { $0.comparison == .isWithheld }) {
      if found.member == opened.store.device {
        return (.setBack, "the cluster does not show any more what this device has stored")
      }
      return (.withheld, "device \(found.member.text) has seen changes that the cluster does not show here")
    }
    if case .wrongCluster(let reason)? = opened.store.session.seen.refusal {
      return (opened.store.session.seen.isOfOtherCluster ? .otherCluster : .setBack, reason)
    }
    // Not noted by an engine yet: only `silenceNow` has asked since.
    if let refusal, case .wrongCluster(let reason) = refusal {
      return (refusal.isOfOtherCluster ? .otherCluster : .setBack, reason)
    }
    if !opened.isReadable, opened.store.isUnconfirmed { return (.unconfirmed, "") }
    // Later contents are sealed under keys that this device has not, and do not fit its copy.
    if comparison.isRemoved { return (.removed, "") }
    // A user may have the right to read, and none to change: what was refused last says so.
    let refused = opened.store.session.refusal
    for case .unauthorized(let reason)? in [refusal, refused] { return (.accessDenied, reason) }
    if let problem = problems.first { return (.refused, "\(problem.subject): \(problem.reason)") }
    if opened.isReadable, let failure = opened.store.unlockFailure { return (.refused, failure.message) }
    if let failure = failure ?? opened.store.unlockFailure {
      if case .unreachable = failure { return (.reconnecting, failure.message) }
      if case .notPermitted = failure { return (.removed, failure.message) }
      return (.locked, failure.message)
    }
    switch refusal {
    case .unavailable(let reason)?, .refused(let reason)?: return (.reconnecting, reason)
    default: break
    }
    guard silence == nil else { return (.reconnecting, "") }
    // The last refusal may be long ago: the alarm was ended since, or nothing was stored since it began.
    let wasFull = refused == .noSpace
    if opened.isFull(expected: wasFull) ?? wasFull { return (.full, "") }
    if let failure = opened.store.session.readingFailure {
      return (.refused, "a part of the store could not be read: \(failure.message)")
    }
    return opened.isReadable ? (.connected, "") : (.locked, "")
  }
}

extension ClusterReport {
  /// For `.keyhole/status`.
  package var value: SettingValue {
    var fields: [ExactString: SettingValue] = [
      "state": .string(ExactString(condition.rawValue)), "store": .string(ExactString(address)),
      "device": .string(ExactString(device)), "reason": .string(ExactString(reason)),
      "encrypted": .bool(isEncrypted), "journalled": .integer(Int128(journalled)),
      "members": .array(
        lastSights.map { sight in
          .dictionary([
            "device": .string(ExactString(sight.member)), "heard": .string(ExactString(sight.time.iso8601)),
          ])
        }),
    ]
    fields["versions"] = .array(versions.map { .string(ExactString($0)) })
    if let offline { fields["offlineSecrets"] = offline.value }
    if let silence { fields["silentSince"] = .string(ExactString(silence.iso8601)) }
    if let heard { fields["heard"] = .string(ExactString(heard.iso8601)) }
    if let compared { fields["compared"] = .string(ExactString(compared.iso8601)) }
    return .dictionary(fields)
  }

  /// All that is wrong.
  package var problems: [Problem] {
    [problem, problemOfCopy, problemOfRotation, problemOfMembers, problemOfRecords, problemOfClocks]
      .compactMap { $0 }
  }

  private var problemOfRecords: Problem? {
    guard let first = missingSights.first, let sight = lastSights.first(where: { $0.member == first }) else {
      return nil
    }
    let others = missingSights.count > 1 ? " (and those of \(missingSights.count - 1) more)" : ""
    return Problem(
      subject: address,
      reason:
        "the record of what device \(first) has seen\(others), which it had signed at \(sight.time.iso8601), is not shown any more: the servers may keep back "
        + "what it stores, or show it something else",
      remedy:
        "look there whether `keyhole cluster members` heard of this device \(device), and find out who writes to the servers; its next record, which a mounted store "
        + "signs every two minutes or so, ends this")
  }

  private var problemOfRotation: Problem? {
    guard isRotating else { return nil }
    return Problem(
      subject: address,
      reason:
        "new keys were made, and not all is sealed under them: a device that was removed may still change the rest",
      remedy: "`keyhole cluster rotate` goes on, if no other device does it now")
  }

  private var problemOfMembers: Problem? {
    guard hasStrayEntries else { return nil }
    return Problem(
      subject: address,
      reason: "its list of members has entries that no member has signed; they count for nothing",
      remedy:
        "find out what writes to the servers beside Keyhole; `etcdctl get --prefix \(prefix)log/` shows them, "
        + "and the next change of members takes the place of the first")
  }

  /// A device's record of later than this, in seconds, was made by another clock.
  private static let largestDifference: Int64 = 600

  private var problemOfClocks: Problem? {
    let now = Timestamp.now
    guard let ahead = lastSights.max(by: { $0.time < $1.time }),
      ahead.time.seconds &- now.seconds > Self.largestDifference
    else { return nil }
    return Problem(
      subject: address,
      reason:
        "the clock of device \(ahead.member) is ahead of this machine's: it has signed a record of \(ahead.time.iso8601)",
      remedy:
        "set the clock of one of them (`timedatectl`): changes get its time, and what is kept of earlier values is deleted by it"
    )
  }

  /// The fault of the copy of the keychain on this device; nil: it has none.
  private var problemOfCopy: Problem? {
    guard let offline, !offline.reason.isEmpty else { return nil }
    let remedy: String =
      switch offline.condition {
      case .missing, .kept, .used: ""
      case .expired, .refused:
        "secrets can be opened when the cluster answers again, which makes another copy"
      case .tooLarge:
        "without the cluster no secret can be opened; mount without `offline-secrets`, or keep less in the store"
      case .failed: "make room, or look at the permissions of `~/.local/state/keyhole/clusters`"
      }
    return Problem(subject: address, reason: offline.reason, remedy: remedy)
  }

  /// The secrets that can be opened while the cluster does not answer, as a clause; empty: none.
  private var rest: String {
    guard let offline, [.kept, .used].contains(offline.condition), let time = offline.time,
      let end = offline.end
    else { return "" }
    return "; until \(end.iso8601) secrets are those of the copy of \(time.iso8601)"
  }

  private static let remedyOfKeys =
    "find out what else writes to the cluster. Where this device's own slot was changed, `keyhole cluster rotate` on another device makes it new; "
    + "else a snapshot of the cluster brings the keys back"

  /// nil: nothing is wrong.
  private var problem: Problem? {
    let (reason, remedy): (String, String) =
      switch condition {
      case .connected: ("", "")
      case .locked where self.reason.isEmpty: ("", "")
      case .locked:
        (
          "this device can't be unlocked: \(self.reason)",
          Self.remedyOfKeys
        )
      case .forked, .withheld:
        (self.reason, "find out who runs the servers and what they answer to whom; store nothing until then")
      case .otherCluster, .setBack:
        (self.reason, "if it was restored on purpose, `keyhole cluster accept` takes it as it is")
      case .refused:
        (self.reason, remedy.isEmpty ? Self.remedyOfKeys : remedy)
      case .removed:
        (
          "this device does not belong to the store any more",
          "`keyhole cluster join --withdraw` forgets its keys, so that it can ask again; or mount without the store"
        )
      case .unconfirmed: ("this device can't be unlocked", ClusterStore.notConfirmed)
      case .accessDenied:
        (
          "it refuses this client: \(self.reason)",
          "look at `etcd-cert=` or `etcd-user=` and the password, and at what the role may do: `etcdctl role get`"
        )
      case .reconnecting:
        (
          "it does not answer" + (silence.map { " since \($0.iso8601)" } ?? "")
            + (self.reason.isEmpty ? "" : ": \(self.reason)") + rest,
          "look at its servers, at the network and, with TLS, at the certificates; it is asked again by itself"
        )
      case .full:
        (
          "its quota is used up: nothing can be stored",
          "compact and defragment it, and end the alarm: `etcdctl compact REVISION` with that of `etcdctl endpoint status -w json`, `etcdctl defrag "
            + "--cluster`, `etcdctl alarm disarm`. Where it is full of what is stored now, its servers need a larger `--quota-backend-bytes`"
        )
      }
    guard !reason.isEmpty else { return nil }
    return Problem(subject: address, reason: reason, remedy: remedy)
  }
}

extension OfflineState {
  /// For `.keyhole/status`.
  fileprivate var value: SettingValue {
    var fields: [ExactString: SettingValue] = [
      "state": .string(ExactString(condition.rawValue)), "reason": .string(ExactString(reason)),
      "secrets": .integer(Int128(count)),
    ]
    if let time { fields["read"] = .string(ExactString(time.iso8601)) }
    if let end { fields["until"] = .string(ExactString(end.iso8601)) }
    return .dictionary(fields)
  }
}
