import Platform

/// Accepts connections, also when the process has no descriptor left: one is kept for that.
struct Acceptor: ~Copyable {
  /// How long nothing is accepted when not even that one is left.
  private static let pause = Duration.milliseconds(100)
  /// So many are accepted in one go.
  private static let most = 64

  private let listener: StreamListener
  private var reserve: Descriptor?
  private var pausedUntil: ContinuousClock.Instant?

  init(_ listener: consuming StreamListener) {
    self.listener = listener
    reserve = Self.open()
  }

  private static func open() -> Descriptor? {
    try? Descriptor("/dev/null", .reading)
  }

  /// For `Poll`; nothing is waited for while nothing can be accepted.
  var entry: Poll.Entry { Poll.Entry(isPaused ? nil : listener.number) }

  /// When connections are accepted again; nil: they are.
  var resumesAt: ContinuousClock.Instant? { pausedUntil.flatMap { $0 > .now ? $0 : nil } }

  private var isPaused: Bool { resumesAt != nil }

  /// Every connection that waits.
  mutating func accept(patience: Duration) -> [PendingConnection] {
    guard !isPaused else { return [] }
    pausedUntil = nil
    if reserve == nil { reserve = Self.open() }
    var accepted: [PendingConnection] = []
    while accepted.count < Self.most {
      do throws(Errno) {
        let connection = PendingConnection(try listener.accept(), patience: patience)
        if let connection { accepted.append(connection) }
      } catch {
        guard takeReserve(after: error) else { break }
      }
    }
    return accepted
  }

  /// Gives up the reserve where no descriptor is left. False: nothing can be accepted now.
  private mutating func takeReserve(after error: Errno) -> Bool {
    if error == .EMFILE || error == .ENFILE, reserve != nil {
      reserve = nil
      return true
    }
    if error != .EAGAIN, error != .ECONNABORTED { pausedUntil = .now + Self.pause }
    return false
  }
}
