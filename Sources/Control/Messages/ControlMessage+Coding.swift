import Model
import Platform
import Store

extension ControlMessage {
  /// The line feed that ends the line that a mount's process of Keyhole 0.1 waits for: so it answers at once.
  private static let lineEnd: UInt8 = 0x0A

  var body: [UInt8] {
    var writer = WireWriter()
    encode(to: &writer)
    return writer.bytes
  }

  private func encode(to writer: inout WireWriter) {
    switch self {
    case .hello(let version, let challenge): Self.encodeHello(version, challenge, to: &writer)
    case .helloUnidentified(let version): Self.encodeHello(version, 0, to: &writer)
    case .lock, .unlock, .pauseReplay, .watch, .fetchItems, .fetchProblems, .fetchRoom, .fetchIsStale: break
    case .commitBatch, .finishBatches: break
    case .pending, .done, .replayPaused, .secret: break
    case .identify(let program):
      writer.put(program) { writer, program in
        writer.put(program.path)
        writer.put(program.file.device)
        writer.put(program.file.inode)
      }
    case .fetchVersions(let identity), .purge(let identity): writer.put(identity) { $0.put($1) }
    case .versions(let versions): writer.put(versions) { $0.put($1) }
    case .identities(let identities): writer.put(identities) { $0.put($1) }
    case .count(let count): writer.put(count)
    case .fetchPath(let item), .fetchSecret(let item), .fetchOtpauth(let item), .fetchCode(let item),
      .changePassword(let item), .restore(let item):
      writer.put(item)
    case .code(let moment): writer.put(moment)
    case .permit(let item, let operation, let secrets):
      writer.put(item)
      writer.put(operation.rawValue)
      writer.put(secrets.rawValue)
    case .fetchRequests, .fetchStatus: break
    case .status(let report): writer.put(report)
    case .deny(let request): writer.put(request)
    case .catchUp(let suites): writer.put(suites) { $0.put($1) }
    case .askSuites(let request): writer.put(request)
    case .suites(let reply): writer.put(reply)
    case .approve(let request, let scope):
      writer.put(request)
      writer.put(scope.rawValue)
    case .requests(let requests): writer.put(requests) { $0.put($1) }
    case .permitRules(let path), .askToUnlock(let path): writer.put(path)
    case .add(let item), .batchItem(let item): writer.put(item)
    case .batchOtpauth(let identity, let modified):
      writer.put(identity)
      writer.put(modified)
    case .update(let items), .remove(let items), .beginBatch(let items): writer.put(items) { $0.put($1) }
    case .rewrite(let item, let readsSecret), .rewriteOtpauth(let item, let readsSecret):
      writer.put(item)
      writer.put(readsSecret)
    case .changed(let items): writer.put(items) { $0.put($1) }
    case .failed(let error): writer.put(error)
    case .path(let path): writer.put(path) { $0.put($1) }
    case .problems(let problems): writer.put(problems) { $0.put($1) }
    case .room(let room): writer.put(room) { $0.put($1) }
    case .isStale(let isStale): writer.put(isStale) { $0.put($1) }
    case .state(let state): writer.put(state)
    case .stored(let snapshot), .settled(let snapshot), .someItems(let snapshot), .allItems(let snapshot),
      .itemsChanged(let snapshot):
      writer.put(snapshot)
    }
  }

  private static func encodeHello(_ version: UInt32, _ challenge: UInt64, to writer: inout WireWriter) {
    writer.put(version)
    writer.put(challenge)
    writer.put(lineEnd)
  }

  /// - Throws: `WireReader.unreadable`.
  init(_ kind: Kind, _ body: [UInt8]) throws(StoreError) {
    var reader = WireReader(body)
    self = try Self.decode(kind, &reader)
    // A later version may say more in its greeting.
    if kind != .hello, kind != .helloUnidentified { try reader.finish() }
  }

  private static func decode(_ kind: Kind, _ reader: inout WireReader) throws(StoreError) -> ControlMessage {
    switch kind {
    case .hello: .hello(version: try reader.integer(), challenge: try reader.integer())
    case .helloUnidentified: .helloUnidentified(version: try reader.integer())
    case .lock: .lock
    case .unlock: .unlock
    case .fetchPath: .fetchPath(try reader.itemID())
    case .pauseReplay: .pauseReplay
    case .fetchRequests: .fetchRequests
    case .fetchStatus: .fetchStatus
    case .deny: .deny(request: try reader.integer())
    case .askSuites: .askSuites(try reader.suiteRequest())
    case .catchUp: .catchUp(suites: try reader.list { (reader) throws(StoreError) in try reader.name() })
    case .approve: .approve(request: try reader.integer(), scope: try reader.approvalScope())
    case .identify:
      .identify(starting: try reader.optional { (reader) throws(StoreError) in try reader.program() })
    case .permit: .permit(try reader.itemID(), try reader.operation(), try reader.secrets())
    case .permitRules: .permitRules(path: try reader.text())
    case .askToUnlock: .askToUnlock(path: try reader.text())
    case .watch: .watch
    case .fetchItems: .fetchItems
    case .fetchSecret: .fetchSecret(try reader.itemID())
    case .fetchOtpauth: .fetchOtpauth(try reader.itemID())
    case .fetchCode: .fetchCode(try reader.itemID())
    case .add: .add(try reader.item())
    case .update: .update(try reader.itemIDs())
    case .rewrite: .rewrite(try reader.itemID(), readingSecret: try reader.flag())
    case .rewriteOtpauth: .rewriteOtpauth(try reader.itemID(), readingSecret: try reader.flag())
    case .remove: .remove(try reader.itemIDs())
    case .changePassword: .changePassword(try reader.itemID())
    case .fetchProblems: .fetchProblems
    case .fetchRoom: .fetchRoom
    case .fetchIsStale: .fetchIsStale
    case .changed: .changed(try reader.list { (reader) throws(StoreError) in try reader.item() })
    case .beginBatch: .beginBatch(rewriting: try reader.itemIDs())
    case .batchItem: .batchItem(try reader.item())
    case .batchOtpauth: .batchOtpauth(try reader.identity(), modified: try reader.time())
    case .commitBatch: .commitBatch
    case .finishBatches: .finishBatches
    case .fetchVersions: .fetchVersions(try reader.optionalIdentity())
    case .restore: .restore(try reader.itemID())
    case .purge: .purge(try reader.optionalIdentity())
    default: try decodeReply(kind, &reader)
    }
  }

  private static func decodeReply(
    _ kind: Kind, _ reader: inout WireReader
  ) throws(StoreError) -> ControlMessage {
    switch kind {
    case .pending: .pending
    case .failed: .failed(try reader.error())
    case .done: .done
    case .path: .path(try reader.optional { (reader) throws(StoreError) in try reader.text() })
    case .requests: .requests(try reader.list { (reader) throws(StoreError) in try reader.waitingRequest() })
    case .status: .status(try reader.text())
    case .suites: .suites(try reader.suiteReply())
    case .replayPaused: .replayPaused
    case .secret: .secret
    case .code: .code(try reader.moment())
    case .stored: .stored(try reader.snapshot())
    case .settled: .settled(try reader.snapshot())
    case .problems: .problems(try reader.list { (reader) throws(StoreError) in try reader.problem() })
    case .isStale: .isStale(try reader.optional { (reader) throws(StoreError) in try reader.flag() })
    case .room: .room(try reader.optional { (reader) throws(StoreError) in try reader.room() })
    case .versions: .versions(try reader.list { (reader) throws(StoreError) in try reader.itemVersion() })
    case .identities: .identities(try reader.list { (reader) throws(StoreError) in try reader.identity() })
    case .count: .count(try reader.integer())
    case .state: .state(try reader.state())
    case .someItems: .someItems(try reader.snapshot())
    case .allItems: .allItems(try reader.snapshot())
    case .itemsChanged: .itemsChanged(try reader.snapshot())
    default: throw WireReader.unreadable
    }
  }
}

extension WireWriter {
  fileprivate mutating func put(_ moment: OneTimeCode.Moment) {
    switch moment {
    case .step(let since, let period):
      put(true)
      put(since)
      put(period)
    case .counter(let counter):
      put(false)
      put(counter)
    }
  }

  fileprivate mutating func put(_ snapshot: ItemSnapshot) {
    put(snapshot.number)
    put(snapshot.entries) {
      $0.put($1.id)
      $0.put($1.item) { $0.put($1) }
    }
  }

  fileprivate mutating func put(_ problem: Problem) {
    for text in [problem.subject, problem.reason, problem.remedy] { put(text) }
  }

  fileprivate mutating func put(_ room: DiskRoom) {
    for number in [room.blockSize, room.blocks, room.freeBlocks, room.availableBlocks] { put(number) }
  }

  fileprivate mutating func put(_ state: KeychainState) {
    put(state.lock == .sealed ? 0 as UInt8 : state.lock == .locked ? 1 : 2)
    for flag in [state.needsPassphrase, state.hasPasscode, state.hasPasscodeForSealed] { put(flag) }
    put(state.sealsWithPasswords)
    put(state.holdsOtpauth)
    put(state.readOnlyReason) { $0.put($1) }
    put(state.takesBatches)
    put(state.retention) {
      $0.put(UInt64($1.versions))
      $0.put(UInt64($1.days))
    }
    put(state.host) { $0.put($1) }
  }

  fileprivate mutating func put(_ version: ItemVersion) {
    put(version.number)
    put(version.item)
    put(version.replaced)
    put(version.changes.rawValue)
  }
}

extension WireReader {
  fileprivate mutating func itemIDs() throws(StoreError) -> [ItemID] {
    try list { (reader) throws(StoreError) in try reader.itemID() }
  }

  fileprivate mutating func snapshot() throws(StoreError) -> ItemSnapshot {
    let number = try integer(UInt64.self)
    return ItemSnapshot(
      number: number,
      try list { (reader) throws(StoreError) in
        let id = try reader.itemID()
        return .init(id, try reader.optional { (reader) throws(StoreError) in try reader.item() })
      })
  }

  fileprivate mutating func problem() throws(StoreError) -> Problem {
    Problem(subject: try text(), reason: try text(), remedy: try text())
  }

  fileprivate mutating func room() throws(StoreError) -> DiskRoom {
    DiskRoom(
      blockSize: try integer(), blocks: try integer(), freeBlocks: try integer(),
      availableBlocks: try integer())
  }

  fileprivate mutating func state() throws(StoreError) -> KeychainState {
    var state = KeychainState()
    switch try integer(UInt8.self) {
    case 0: state.lock = .sealed
    case 1: state.lock = .locked
    case 2: state.lock = .open
    default: throw Self.unreadable
    }
    (state.needsPassphrase, state.hasPasscode) = (try flag(), try flag())
    (state.hasPasscodeForSealed, state.sealsWithPasswords) = (try flag(), try flag())
    state.holdsOtpauth = try flag()
    state.readOnlyReason = try optional { (reader) throws(StoreError) in try reader.text() }
    state.takesBatches = try flag()
    state.retention = try optional { (reader) throws(StoreError) in
      let (versions, days) = (try reader.integer(UInt64.self), try reader.integer(UInt64.self))
      return HistoryRetention(versions: Int(clamping: versions), days: Int(clamping: days))
    }
    state.host = try optionalName()
    return state
  }

  fileprivate mutating func optionalIdentity() throws(StoreError) -> ItemIdentity? {
    try optional { (reader) throws(StoreError) in try reader.identity() }
  }

  fileprivate mutating func itemVersion() throws(StoreError) -> ItemVersion {
    ItemVersion(
      number: try integer(), item: try item(), replaced: try time(),
      changes: VersionChanges(rawValue: try integer()))
  }
}

extension WireReader {
  fileprivate mutating func secrets() throws(StoreError) -> ItemSecrets {
    let secrets = ItemSecrets(rawValue: try integer())
    guard !secrets.isEmpty, secrets.isSubset(of: [.value, .otpauth, .code]) else { throw Self.unreadable }
    return secrets
  }

  fileprivate mutating func moment() throws(StoreError) -> OneTimeCode.Moment {
    guard try flag() else { return .counter(try integer()) }
    let (since, period) = (try time(), try integer(Int64.self))
    guard period > 0 else { throw Self.unreadable }
    return .step(since: since, period: period)
  }

  mutating func operation() throws(StoreError) -> AccessOperation {
    guard let operation = AccessOperation(rawValue: try text()), operation != .record else {
      throw Self.unreadable
    }
    return operation
  }
}

extension WireReader {
  fileprivate mutating func program() throws(StoreError) -> Caller.Identity.Executable {
    let path = try text()
    return .init(path: path, file: FileID(device: try integer(), inode: try integer()))
  }
}
