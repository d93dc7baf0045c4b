/// The writes of one key by several clients that each read a copy, which may be behind: whether there is one order of the writes that
/// fits all that was read.
///
/// A value comes before another one where it was acknowledged or read before the write of the other began; and where one client has
/// written or read it before it read the other: a copy never goes back. Each value is written once at most, but for 0: that one is there
/// at the beginning.
public struct FollowedHistory: Sendable {
  public enum Kind: Hashable, Sendable {
    case write(Int)
    case read(Int)
  }

  public struct Operation: Hashable, Sendable {
    public var client: Int
    public var kind: Kind
    /// When it was called, on a clock that all clients share.
    public var begin: Int64
    /// When its reply was there; nil: there was none, and the write may have happened, or not.
    public var end: Int64?

    public init(client: Int, _ kind: Kind, begin: Int64, end: Int64?) {
      (self.client, self.kind, self.begin, self.end) = (client, kind, begin, end)
    }

    var value: Int {
      switch kind {
      case .write(let value), .read(let value): value
      }
    }
  }

  /// Where one value was: the times of all that is known of it.
  private struct Times {
    /// When its write began.
    var written: Int64
    /// When the first reply that had it was there.
    var known = Int64.max
    /// For each client: the first reply that had it, and the last read of it.
    var first: [Int64]
    var last: [Int64]

    init(written: Int64, clients: Int) {
      self.written = written
      first = Array(repeating: .max, count: clients)
      last = Array(repeating: .min, count: clients)
    }

    func isBefore(_ other: Times) -> Bool {
      if known < other.written { return true }
      for client in first.indices where first[client] < other.last[client] { return true }
      return false
    }
  }

  private var operations: [Operation] = []

  public init(_ operations: [Operation] = []) { self.operations = operations }

  public mutating func add(_ operation: Operation) { operations.append(operation) }

  public var count: Int { operations.count }

  /// The values that were acknowledged.
  public var acknowledged: Set<Int> {
    Set(operations.compactMap { if case .write(let value) = $0.kind, $0.end != nil { value } else { nil } })
  }

  /// The values that do not fit; nil: there is an order.
  public var contradiction: String? {
    let clients = (operations.map(\.client).max() ?? 0) + 1
    var times = [0: Times(written: .min, clients: clients)]
    times[0]?.known = .min
    for case (.write(let value), let begin) in operations.map({ ($0.kind, $0.begin) }) {
      times[value] = Times(written: begin, clients: clients)
    }
    for operation in operations {
      guard let end = operation.end else { continue }
      let (client, value) = (operation.client, operation.value)
      guard var known = times[value] else { return "\(value) was read, and never written" }
      if end < known.written { return "\(value) was read before it was written" }
      known.known = min(known.known, end)
      known.first[client] = min(known.first[client], end)
      if case .read = operation.kind { known.last[client] = max(known.last[client], operation.begin) }
      times[value] = known
    }
    // A value of which nothing is known came before nothing.
    let cycle = Self.unordered(times.filter { $0.value.known < .max })
    return cycle.isEmpty ? nil : "no order fits \(cycle.prefix(12).map { "\($0)" }.joined(separator: ", "))"
  }

  /// The values that are in circles of "before": none where all can be brought into an order.
  private static func unordered(_ times: [Int: Times]) -> [Int] {
    let values = times.keys.sorted()
    let all = values.compactMap { times[$0] }
    let rest = held(Array(all.indices)) { all[$0].isBefore(all[$1]) }
    return held(rest) { all[$1].isBefore(all[$0]) }.map { values[$0] }
  }

  /// The rest, after all were taken away that none of the others comes before, again and again.
  private static func held(_ indices: [Int], _ isBefore: (Int, Int) -> Bool) -> [Int] {
    var rest = Set(indices)
    var holders: [Int: Int] = [:]
    for index in indices { holders[index] = indices.count { $0 != index && isBefore($0, index) } }
    var free = indices.filter { holders[$0] == 0 }
    while let index = free.popLast() {
      rest.remove(index)
      for other in rest where other != index && isBefore(index, other) {
        holders[other, default: 0] -= 1
        if holders[other] == 0 { free.append(other) }
      }
    }
    return rest.sorted()
  }
}
