/// The operations of clients on one key, and whether they could have happened one after the other: each at one moment between
/// its call and its reply (linearizability, Herlihy and Wing 1990).
///
/// Each value is written once at most, so that a value says which operation wrote it. nil: the key is absent, as at the beginning.
public struct RegisterHistory: Sendable {
  public enum Kind: Hashable, Sendable {
    case write(Int)
    /// With the value that the reply had.
    case read(Int?)
    /// Writes where the first value is present. One that found another value is a `read` of that.
    case exchange(Int?, Int)
  }

  public struct Operation: Hashable, Sendable {
    public var client: Int
    public var kind: Kind
    /// When it was called, on a clock that all clients share.
    public var begin: Int64
    /// When its reply was there; nil: there was none, and it may have happened at any time from `begin` on, or never.
    public var end: Int64?

    public init(client: Int, _ kind: Kind, begin: Int64, end: Int64?) {
      (self.client, self.kind, self.begin, self.end) = (client, kind, begin, end)
    }
  }

  private struct Configuration: Hashable {
    /// Operations that have happened, of those that run.
    var happened: Set<Int> = []
    var value: Int?
  }

  private var operations: [Operation]

  public init(_ operations: [Operation]) {
    self.operations = operations
  }

  public mutating func add(_ operation: Operation) {
    operations.append(operation)
  }

  public var count: Int { operations.count }

  /// The operation up to which everything could have happened so, and which could not; nil: the history is linearizable.
  ///
  /// At each reply, all orders are tried in which the operations that run could have happened up to then (just-in-time
  /// linearization, Lowe 2017). It takes as many steps as there are orders of what runs at the same time: few with few clients.
  public var violation: Operation? {
    let all = bounded
    var configurations: Set<Configuration> = [Configuration()]
    var running: Set<Int> = []
    for (index, isBegin) in Self.events(all) {
      if isBegin {
        running.insert(index)
        continue
      }
      configurations = Self.closure(configurations, all, running).filter { $0.happened.contains(index) }
      if configurations.isEmpty { return all[index] }
      running.remove(index)
      configurations = Set(
        configurations.map { configuration in
          var rest = configuration
          rest.happened.remove(index)
          return rest
        })
    }
    return nil
  }

  /// The operations with an end each. One without a reply whose value was seen happened before that reply; one whose value
  /// was not seen may as well never have happened, and is left out.
  private var bounded: [Operation] {
    var seen: [Int: Int64] = [:]
    for operation in operations {
      guard let value = operation.kind.expected, let end = operation.end else { continue }
      seen[value] = min(seen[value] ?? .max, end)
    }
    // An operation without a reply may have seen the value of another one without a reply.
    var all: [Operation] = []
    var unknown = operations.filter { $0.end == nil }
    while let index = unknown.firstIndex(where: { seen[$0.kind.written ?? .min] != nil }) {
      var operation = unknown.remove(at: index)
      operation.end = seen[operation.kind.written ?? .min]
      if let value = operation.kind.expected, let end = operation.end {
        seen[value] = min(seen[value] ?? .max, end)
      }
      all.append(operation)
    }
    return operations.filter { $0.end != nil } + all
  }

  /// Begins and ends in the order of time; where two are at the same time, the begin first, so that they may overlap.
  private static func events(_ operations: [Operation]) -> [(index: Int, isBegin: Bool)] {
    var events: [(time: Int64, index: Int, isBegin: Bool)] = []
    for (index, operation) in operations.enumerated() {
      events.append((operation.begin, index, true))
      events.append((max(operation.begin, operation.end ?? .max), index, false))
    }
    events.sort { ($0.time, $0.isBegin ? 0 : 1, $0.index) < ($1.time, $1.isBegin ? 0 : 1, $1.index) }
    return events.map { ($0.index, $0.isBegin) }
  }

  /// All configurations that these can become by operations that run.
  private static func closure(
    _ configurations: Set<Configuration>, _ operations: [Operation], _ running: Set<Int>
  ) -> Set<Configuration> {
    var reached = configurations
    var new = Array(configurations)
    while let configuration = new.popLast() {
      for index in running where !configuration.happened.contains(index) {
        guard var next = step(configuration, operations[index].kind) else { continue }
        next.happened.insert(index)
        if reached.insert(next).inserted { new.append(next) }
      }
    }
    return reached
  }

  private static func step(_ configuration: Configuration, _ kind: Kind) -> Configuration? {
    var next = configuration
    switch kind {
    case .write(let value): next.value = value
    case .read(let value): if configuration.value != value { return nil }
    case .exchange(let expected, let value):
      if configuration.value != expected { return nil }
      next.value = value
    }
    return next
  }
}

extension RegisterHistory.Kind {
  /// The value that was there.
  fileprivate var expected: Int? {
    switch self {
    case .write: nil
    case .read(let value), .exchange(let value, _): value
    }
  }

  fileprivate var written: Int? {
    switch self {
    case .write(let value), .exchange(_, let value): value
    case .read: nil
    }
  }
}
