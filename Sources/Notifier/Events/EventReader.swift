import Synchronization

/// An open handle of `.keyhole/events`.
///
/// Lines that are no longer kept can't be read: this reader gets one `overflow` line instead. Behind
/// it the reader is at the first line that is kept, so from there on the reader's offsets lag
/// behind the log's.
public final class EventReader: Sendable {
  fileprivate struct Gap {
    /// Where the reader was.
    var offset: Int
    var bytes: [UInt8]
    /// Where the log goes on.
    var resumption: Int
  }

  fileprivate struct State {
    var gap: Gap?
    /// The reader's offset behind what it read, and the log's.
    var end = 0
    var position = 0
    var isInLine = false
  }

  /// A read of this size may be one of several pieces, of which the kernel asks for the next one when one is
  /// full. That would wait, and what is there already with it: so none is full.
  private static let pieceSize = 64 * 1024

  /// The log that it reads.
  public let log: EventLog
  /// Its ticket for poll(2).
  public let ticket: EventLog.Ticket
  private let state = Mutex(State())

  /// A reader at the beginning of the log.
  public init(_ log: EventLog) {
    self.log = log
    ticket = log.ticket()
  }

  deinit { log.withdraw(ticket) }

  /// The bytes at `offset`; empty: none yet.
  public func read(at offset: Int, count: Int) -> [UInt8] {
    state.withLock { $0.read(log, at: offset, count: count < Self.pieceSize ? count : count - 1) }
  }

  /// Whether there is more than what was read last.
  public var hasMore: Bool { state.withLock { log.end > max($0.position, EventLog.beginning) } }

  /// Has `body` called once when there is more than now; now, if there is more than what was read last.
  public func wait(_ ticket: EventLog.Ticket, _ body: @escaping @Sendable () -> Void) {
    let position = state.withLock { max($0.position, EventLog.beginning) }
    log.wait(ticket, beyond: position, body)
  }
}

extension EventReader.State {
  fileprivate mutating func read(_ log: EventLog, at offset: Int, count: Int) -> [UInt8] {
    guard offset >= 0, count > 0 else { return [] }
    let bytes = find(log, offset, count)
    // A read that found nothing moves no offset: pread(2) may ask for any, up to 2⁶³ - 1.
    guard let last = bytes.last else { return bytes }
    if gap == nil { end = 0 }
    end = max(end, offset &+ bytes.count)
    isInLine = last != 0x0A
    return bytes
  }

  private mutating func find(_ log: EventLog, _ offset: Int, _ count: Int) -> [UInt8] {
    if let gap, offset < gap.offset || offset > end { self.gap = nil }
    if let gap, offset < gap.offset + gap.bytes.count { return read(gap, offset, count) }
    // Behind a gap the offset is at most `end`, so this is exact; without one the shift is 0.
    position = offset &+ (gap?.shift ?? 0)
    if position < EventLog.beginning {
      // The blank is for a read of no more than it, as of `tail`, which reads from the end.
      guard count > EventLog.beginning - position else { return read(.blank, offset, count) }
      gap = EventReader.Gap(offset: offset, bytes: [], resumption: EventLog.beginning)
      position = EventLog.beginning
    }
    guard let bytes = log.bytes(from: position, count: count) else { return skip(log, offset, count) }
    position += bytes.count
    return bytes
  }

  /// Puts the `overflow` where the reader is, and what is kept behind it.
  private mutating func skip(_ log: EventLog, _ offset: Int, _ count: Int) -> [UInt8] {
    let (line, start) = log.overflow
    // A line that was read in part and is gone now is ended first.
    let bytes = isInLine && offset == end ? [0x0A] + line : line
    let new = EventReader.Gap(offset: offset, bytes: bytes, resumption: start)
    gap = new
    return read(new, offset, count)
  }

  private mutating func read(_ gap: EventReader.Gap, _ offset: Int, _ count: Int) -> [UInt8] {
    position = gap.resumption
    return Array(gap.bytes.dropFirst(offset - gap.offset).prefix(count))
  }
}

extension EventReader.Gap {
  static let blank = Self(offset: 0, bytes: [0x20], resumption: EventLog.beginning)

  /// How much further the log is than the reader behind the gap.
  var shift: Int { resumption - offset - bytes.count }
}
