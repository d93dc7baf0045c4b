package import Model
package import Store

/// Everything that a program and the process of a mount say to each other on the control socket: requests, replies and
/// events. `Documentation/CONTROL.md` describes the protocol.
///
/// A message travels as a `MessageHeader`, the body (this), and the raw bytes of a secret where one belongs to it.
package enum ControlMessage: Hashable, Sendable {
  /// The version of the protocol that this code speaks. Version 1 was the line protocol of Keyhole 0.1, without a `hello`.
  package static let version: UInt32 = 5

  /// The first message of both sides, the same in every version. The server's holds the number that each further message
  /// of the client has to repeat: so the client proves that it has sent that message after it was identified.
  case hello(version: UInt32, challenge: UInt64)
  /// As `hello`, of a client whose requests need no rules: to lock, to unlock, and the like.
  case helloUnidentified(version: UInt32)

  // Requests without identification.
  case lock
  /// Secret: the passphrase.
  case unlock
  /// The path of an item in the tree.
  case fetchPath(ItemID)
  /// The mount's process does nothing in its own tree until the connection ends.
  case pauseReplay
  /// The requests that wait for `approve` or `deny`; `requests` is the answer.
  case fetchRequests
  /// The report of the process, where there is no mount that has it as a file; `status` is the answer.
  case fetchStatus
  /// Refuses a request that waits.
  case deny(request: UInt32)
  /// The process is to look at its keychain and at these suites, which the other side has changed, and to answer when the mount shows them.
  case catchUp(suites: [ExactString])
  /// About the suites of a mount that keeps its settings in a cluster; its answer is `suites` where no other one fits.
  case askSuites(SuiteRequest)

  // Requests of an identified process.
  /// The mount's process is to know the executable of this one until it ends: it will close itself to others. Of `keyhole run`
  /// also the program that it starts.
  case identify(starting: Caller.Identity.Executable?)
  /// Approval of an operation on an item that the other side can open by itself.
  case permit(ItemID, AccessOperation, ItemSecrets)
  /// Approval to change the rules of a folder.
  case permitRules(path: String)
  /// The user is to be asked, where this process runs, to approve a request that waits.
  case approve(request: UInt32, scope: ApprovalScope)
  /// The user is to be asked for the passphrase of a locked keychain, because of this path; `state` is the answer.
  case askToUnlock(path: String)
  /// Every item now, and each later change.
  case watch
  case fetchItems
  case fetchSecret(ItemID)
  case fetchOtpauth(ItemID)
  /// The present one-time code; `code` is the answer.
  case fetchCode(ItemID)
  /// Secret: the item's.
  case add(Item)
  case update([ItemID])
  case rewrite(ItemID, readingSecret: Bool)
  /// `stored` and `changed` follow, with the `otpauth:` URI as their secret.
  case rewriteOtpauth(ItemID, readingSecret: Bool)
  case remove([ItemID])
  /// The mount's process asks the person for the item's present password and for a new one.
  case changePassword(ItemID)
  case fetchProblems
  case fetchRoom
  /// `isStale` is the answer.
  case fetchIsStale
  /// The items as they are to be stored, after `stored`. Secret: the item's, in a `rewrite`.
  case changed([Item])
  /// Many changes in one transaction, of which these items get other secrets. After `stored` come the
  /// changes, each a message, and `commitBatch`; without that nothing is stored.
  case beginBatch(rewriting: [ItemID])
  /// An item of a batch as it is to be stored; a new one has an empty id. Secret: the item's.
  case batchItem(Item)
  /// The item of this identity, which may be one of the batch, gets another `otpauth:` URI. Secret: that.
  case batchOtpauth(ItemIdentity, modified: Timestamp)
  case commitBatch
  /// The versions of the item with this identity; without one, the identities of all items that have some. Their secrets are
  /// fetched by their ids, as those of items.
  case fetchVersions(ItemIdentity?)
  /// The item becomes what this version of it says.
  case restore(ItemID)
  /// Deletes the versions of the item with this identity; without one, those of all items.
  case purge(ItemIdentity?)
  /// Wants to know when no batch is under way: of a process that has ended, it may be.
  case finishBatches

  // Replies.
  /// The request is being worked on, or a person is being asked.
  case pending
  case failed(StoreError)
  case done
  case path(String?)
  case requests([WaitingRequest])
  /// One JSON object, as in `.keyhole/status`.
  case status(String)
  case replayPaused
  /// Secret: the item's.
  case secret
  /// Secret: the digits.
  case code(OneTimeCode.Moment)
  /// The items as they are stored, to be changed. Secret: the item's, in a `rewrite`.
  case stored(ItemSnapshot)
  case versions([ItemVersion])
  case identities([ItemIdentity])
  case count(UInt64)
  /// The items as they are after the request.
  case settled(ItemSnapshot)
  case problems([Problem])
  case room(DiskRoom?)
  case isStale(Bool?)
  case suites(SuiteReply)

  // Events, and the parts of `fetchItems`.
  case state(KeychainState)
  case someItems(ItemSnapshot)
  case allItems(ItemSnapshot)
  case itemsChanged(ItemSnapshot)
}

/// Items as the mount's process found them, all at one moment.
package struct ItemSnapshot: Hashable, Sendable {
  package struct Entry: Hashable, Sendable {
    package var id: ItemID
    /// nil: it is gone.
    package var item: Item?

    package init(_ id: ItemID, _ item: Item?) {
      (self.id, self.item) = (id, item)
    }
  }

  /// The later it looked, the higher.
  package var number: UInt64
  package var entries: [Entry]

  package init(number: UInt64, _ entries: [Entry]) {
    (self.number, self.entries) = (number, entries)
  }

  var items: [Item] { entries.compactMap(\.item) }
}

/// The state that a keychain reports.
package struct KeychainState: Hashable, Sendable {
  package var lock = KeychainLock.sealed
  package var needsPassphrase = true
  package var hasPasscode = true
  package var hasPasscodeForSealed = true
  package var sealsWithPasswords = false
  package var holdsOtpauth = false
  package var readOnlyReason: String?
  /// Whether `beginBatch` is served.
  package var takesBatches = false
  /// nil: it keeps no versions.
  package var retention: HistoryRetention?
  /// The number of the mount's device in the keychain's cluster; nil: it is no cluster's.
  package var host: ExactString?

  package init() {}

  init(of engine: any KeychainEngine) {
    let locking = engine.locking
    (lock, needsPassphrase) = (locking.lockState, locking.needsPassphrase)
    hasPasscode = locking.hasPasscode(sealed: false)
    hasPasscodeForSealed = locking.hasPasscode(sealed: true)
    sealsWithPasswords = engine.passwords != nil
    readOnlyReason = engine.readOnlyReason
    holdsOtpauth = engine.otpauthURIs != nil
    takesBatches = engine.spooling != nil
    retention = engine.history.map { $0.retention ?? .none }
    host = engine.host
  }
}

extension ControlMessage {
  /// The kind of a message, its first byte. Numbers are never used again; letters (0x61 and above) are none, because the
  /// line protocol of Keyhole 0.1 begins with one.
  enum Kind: UInt8, CaseIterable {
    case hello = 1
    case helloUnidentified, lock, unlock, fetchPath, pauseReplay, fetchRequests, deny
    case permit = 16
    case permitRules, watch, fetchItems, fetchSecret, add, update, rewrite, remove, fetchProblems, fetchRoom
    case changed, identify, changePassword, fetchOtpauth, rewriteOtpauth
    case beginBatch, batchItem, batchOtpauth, commitBatch, finishBatches, askToUnlock
    case approve, fetchCode
    case pending = 40
    case failed, done, path, replayPaused, secret, stored, settled, problems, room, requests, code
    case state = 60
    case someItems, allItems, itemsChanged
    case fetchVersions = 72
    case restore, purge
    case versions = 80
    case identities, count
    case fetchStatus = 88
    case status
    case askSuites = 90
    case suites
    case fetchIsStale, isStale
    case catchUp = 94
  }

  var kind: Kind {
    switch self {
    case .hello: .hello
    case .helloUnidentified: .helloUnidentified
    case .lock: .lock
    case .unlock: .unlock
    case .fetchPath: .fetchPath
    case .pauseReplay: .pauseReplay
    case .fetchRequests: .fetchRequests
    case .fetchStatus: .fetchStatus
    case .deny: .deny
    case .catchUp: .catchUp
    case .askSuites: .askSuites
    case .suites: .suites
    case .approve: .approve
    case .identify: .identify
    case .permit: .permit
    case .permitRules: .permitRules
    case .askToUnlock: .askToUnlock
    case .watch: .watch
    case .fetchItems: .fetchItems
    case .fetchSecret: .fetchSecret
    case .fetchOtpauth: .fetchOtpauth
    case .fetchCode: .fetchCode
    case .add: .add
    case .update: .update
    case .rewrite: .rewrite
    case .rewriteOtpauth: .rewriteOtpauth
    case .remove: .remove
    case .changePassword: .changePassword
    case .fetchProblems: .fetchProblems
    case .fetchRoom: .fetchRoom
    case .fetchIsStale: .fetchIsStale
    case .changed: .changed
    case .beginBatch: .beginBatch
    case .batchItem: .batchItem
    case .batchOtpauth: .batchOtpauth
    case .commitBatch: .commitBatch
    case .finishBatches: .finishBatches
    case .fetchVersions: .fetchVersions
    case .restore: .restore
    case .purge: .purge
    case .versions: .versions
    case .identities: .identities
    case .count: .count
    case .pending: .pending
    case .failed: .failed
    case .done: .done
    case .path: .path
    case .requests: .requests
    case .status: .status
    case .replayPaused: .replayPaused
    case .secret: .secret
    case .code: .code
    case .stored: .stored
    case .settled: .settled
    case .problems: .problems
    case .room: .room
    case .isStale: .isStale
    case .state: .state
    case .someItems: .someItems
    case .allItems: .allItems
    case .itemsChanged: .itemsChanged
    }
  }

  /// Whether the connection stays, and changes are reported on it.
  var isWatch: Bool {
    switch self {
    case .watch, .askSuites(.watch): true
    default: false
    }
  }

  /// Whether a request is answered without rules: for any process of the user's.
  var needsIdentification: Bool {
    switch self {
    case .lock, .unlock, .fetchPath, .pauseReplay, .fetchRequests, .fetchStatus, .deny, .askSuites, .catchUp:
      false
    default: true
    }
  }
}
