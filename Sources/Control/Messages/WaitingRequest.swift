import Model
package import Store

/// A request for a guarded secret, or for a locked one, that waits for `keyhole approve` or `keyhole deny`.
package struct WaitingRequest: Hashable, Sendable {
  package var number: UInt32
  /// The paths of the items in the tree.
  package var paths: [String]
  package var purpose: ListedRequest.Purpose
  /// The executable, or why it is unidentified.
  package var program: String
  /// The ID of the process; 0: it has none in this pid namespace.
  package var process: Int32
  /// The processes above it, the nearest first.
  package var parents: [String]
  /// Why the question could not be asked.
  package var reason: String
  /// In how many seconds it ends by itself.
  package var secondsLeft: UInt32

  package init(_ request: ListedRequest) {
    (number, paths, purpose) = (request.number, request.paths, request.purpose)
    let started = request.caller.startedCommand.map { ", which starts \($0.name)" }
    (program, parents) = (request.caller.shownName + (started ?? ""), request.caller.parents)
    process = request.caller.process?.number ?? 0
    (reason, secondsLeft) = (request.reason, UInt32(clamping: request.secondsLeft))
  }

  fileprivate init(_ reader: inout WireReader) throws(StoreError) {
    number = try reader.integer()
    paths = try reader.list { (reader) throws(StoreError) in try reader.text() }
    // The word of an access operation stands here alone since version 1, and so does `unlock`.
    guard let purpose = ListedRequest.Purpose(word: try reader.text()) else { throw WireReader.unreadable }
    self.purpose = purpose
    program = try reader.text()
    process = try reader.integer()
    parents = try reader.list { (reader) throws(StoreError) in try reader.text() }
    reason = try reader.text()
    secondsLeft = try reader.integer()
  }
}

/// How long an approval holds, as `keyhole approve` says it.
package enum ApprovalScope: UInt8, Sendable {
  case once
  /// For the same program in the same session.
  case session
  /// By a rule for the program.
  case always

  var answer: Answer.Scope {
    switch self {
    case .once: .items
    case .session: .session
    case .always: .always
    }
  }
}

extension WireWriter {
  mutating func put(_ request: WaitingRequest) {
    put(request.number)
    put(request.paths) { $0.put($1) }
    put(request.purpose.word)
    put(request.program)
    put(request.process)
    put(request.parents) { $0.put($1) }
    put(request.reason)
    put(request.secondsLeft)
  }
}

extension WireReader {
  mutating func waitingRequest() throws(StoreError) -> WaitingRequest { try WaitingRequest(&self) }

  mutating func approvalScope() throws(StoreError) -> ApprovalScope {
    guard let scope = ApprovalScope(rawValue: try integer()) else { throw Self.unreadable }
    return scope
  }
}
