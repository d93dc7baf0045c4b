public import Model
import Synchronization

/// The changes of the stores as lines of JSON: what `.keyhole/events` shows (SPECIFICATION.md, section 9).
///
/// The last 1,000 lines are kept. Offsets count from the beginning of the mount and never shrink. Readers wait with a
/// ``Ticket``, without a thread.
public final class EventLog: Sendable {
  /// How many lines are kept.
  static let limit = 1_000
  /// The log begins with a blank, so that it is never empty: `tail -f` reads an empty file to its end before
  /// it follows it, and this one has no end. A reader from the beginning does not get the blank.
  static let beginning = 1

  fileprivate struct Line {
    let offset: Int
    let bytes: [UInt8]
  }

  fileprivate struct State {
    /// Up to twice as many as are kept: dropping one by one would move all of them each time.
    var lines: [Line] = []
    var dropped = 0
    var end = EventLog.beginning
    var number = 0
    var time: Timestamp
    var waiters: [Ticket: @Sendable () -> Void] = [:]
    var tickets = 0
  }

  /// Identifies a reader that waits.
  public struct Ticket: Hashable, Sendable {
    fileprivate let number: Int
  }

  private let state: Mutex<State>
  private let now: @Sendable () -> Timestamp

  /// `now` is the clock that the lines' times are read from.
  public init(_ now: @escaping @Sendable () -> Timestamp) {
    state = Mutex(State(time: now()))
    self.now = now
  }

  /// Adds a line, and calls the readers that wait for it.
  public func append(_ event: ChangeEvent) {
    let waiters = state.withLock { state in
      state.append(event, at: now())
      defer { state.waiters = [:] }
      return state.waiters.values
    }
    for waiter in waiters { waiter() }
  }

  /// The length so far, in bytes, with what is no longer kept.
  public var end: Int { state.withLock { $0.end } }

  /// The line that stands for those that are no longer kept, and where the kept ones begin.
  var overflow: (line: [UInt8], start: Int) {
    state.withLock { state in
      let last = state.number - state.lines.count + state.dropped
      return (Array(ChangeEvent.overflow.line(number: last, time: now()).utf8), state.start)
    }
  }

  /// When the last line was added.
  public var modified: Timestamp { state.withLock { $0.time } }

  /// Up to `count` bytes from `offset`; nil: they are no longer kept.
  func bytes(from offset: Int, count: Int) -> [UInt8]? {
    state.withLock { $0.bytes(from: offset, count: count) }
  }

  /// The bytes at an offset of the file, for a mapping: less than `count` bytes at the end. nil: it is no longer kept.
  public func page(at offset: Int, count: Int) -> [UInt8]? {
    guard offset >= 0, count > 0 else { return [] }
    return state.withLock { state in
      let blank: [UInt8] = offset < Self.beginning ? [0x20] : []
      guard let bytes = state.bytes(from: max(offset, Self.beginning), count: count) else { return nil }
      return Array((blank + bytes).prefix(count))
    }
  }

  /// A new ticket for a reader that may wait.
  public func ticket() -> Ticket {
    state.withLock { state in
      state.tickets += 1
      return Ticket(number: state.tickets)
    }
  }

  /// Has `body` called once when there is more than `end` bytes; now, if there is.
  func wait(_ ticket: Ticket, beyond end: Int, _ body: @escaping @Sendable () -> Void) {
    let isThere = state.withLock { state in
      guard state.end <= end else { return true }
      state.waiters[ticket] = body
      return false
    }
    if isThere { body() }
  }

  /// Ends a wait: the body of ``wait(_:beyond:_:)`` is not called any more.
  public func withdraw(_ ticket: Ticket) {
    state.withLock { _ = $0.waiters.removeValue(forKey: ticket) }
  }
}

extension EventLog.State {
  fileprivate mutating func append(_ event: ChangeEvent, at now: Timestamp) {
    number += 1
    time = now
    let line = EventLog.Line(offset: end, bytes: Array(event.line(number: number, time: time).utf8))
    lines.append(line)
    end += line.bytes.count
    if lines.count - dropped > EventLog.limit { dropped += 1 }
    if dropped > EventLog.limit {
      lines.removeFirst(dropped)
      dropped = 0
    }
  }

  fileprivate var start: Int { lines.isEmpty ? EventLog.beginning : lines[dropped].offset }

  fileprivate func bytes(from offset: Int, count: Int) -> [UInt8]? {
    guard offset >= start else { return nil }
    var bytes: [UInt8] = []
    for line in lines[lineIndex(at: offset)...] where bytes.count < count {
      bytes += line.bytes.dropFirst(max(0, offset - line.offset)).prefix(count - bytes.count)
    }
    return bytes
  }

  /// The last line that begins at `offset` or before.
  private func lineIndex(at offset: Int) -> Int {
    var (low, high) = (dropped, lines.count)
    while high - low > 1 {
      let middle = (low + high) / 2
      if lines[middle].offset <= offset { low = middle } else { high = middle }
    }
    return low
  }
}
