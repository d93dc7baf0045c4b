import Glibc

/// poll(2): waiting for events of descriptors. A signal never ends it early.
package enum Poll {
  package struct Events: OptionSet, Sendable {
    package let rawValue: Int16
    package init(rawValue: Int16) { self.rawValue = rawValue }

    /// POLLIN: something can be read, or the other end is closed.
    package static let input = Events(rawValue: Int16(POLLIN))
    /// POLLOUT: something can be written.
    package static let output = Events(rawValue: Int16(POLLOUT))
    /// POLLPRI: a change of a file such as /proc/self/mountinfo.
    package static let priority = Events(rawValue: Int16(POLLPRI))
  }

  /// A descriptor and the events that are waited for. It has to stay open until `wait` returns.
  package struct Entry: Sendable {
    fileprivate let number: Int32
    fileprivate let events: Events

    /// nil: nothing is waited for in this place.
    package init(_ number: Int32?, _ events: Events = .input) {
      (self.number, self.events) = (number ?? -1, events)
    }
  }

  /// Waits until one of the descriptors is ready; nil: without a limit. It looks once where the moment has passed.
  ///
  /// - Returns: for each entry whether it is ready: it has one of its events, or an error or a hang-up (POLLERR, POLLHUP,
  ///   POLLNVAL). None is: the moment has come.
  package static func wait(
    for entries: [Entry], until deadline: ContinuousClock.Instant?
  ) throws(Errno) -> [Bool] {
    var raw = entries.map { pollfd(fd: $0.number, events: $0.events.rawValue, revents: 0) }
    while true {
      // SAFETY: the array says how long it is.
      let count = unsafe poll(&raw, nfds_t(raw.count), milliseconds(until: deadline))
      if count < 0, Errno.current != .EINTR { throw .current }
      if count > 0 { return raw.map { $0.revents != 0 } }
      if count == 0, let deadline, deadline <= .now { return raw.map { _ in false } }
    }
  }

  /// The same for one descriptor. False: it is not ready by then, or the moment had passed already.
  package static func wait(
    for number: Int32, _ events: Events = .input, until deadline: ContinuousClock.Instant?
  ) throws(Errno) -> Bool {
    if let deadline, deadline <= .now { return false }
    return try wait(for: [Entry(number, events)], until: deadline) == [true]
  }

  /// Whether a descriptor is ready now. An error counts as ready, so that the next call on it reports that.
  package static func isReady(_ number: Int32, _ events: Events = .input) -> Bool {
    (try? wait(for: [Entry(number, events)], until: .now)) != [false]
  }

  private static func milliseconds(until deadline: ContinuousClock.Instant?) -> Int32 {
    guard let deadline else { return -1 }
    // Eleven days at once are enough: then it waits again.
    let rest = min(max(0, (deadline - .now) / .milliseconds(1)), 1e9)
    return Int32(clamping: Int(rest.rounded(.up)))
  }
}
