import Dispatch
import Glibc
import Synchronization

/// Hears from logind when a session of the user's is locked or unlocked, and when the machine goes to sleep.
public final class SessionWatch: Sendable {
  public enum News: Sendable {
    case locked
    case unlocked
    case sleeps
    case wakes
  }

  private let hear: @Sendable (News) -> Void
  private let problem = Mutex<String?>(nil)
  /// -1: not connected.
  private let descriptor = Atomic<Int32>(-1)

  /// Begins to listen, without waiting for it. `hear` is called on a thread of its own.
  public init(_ hear: @escaping @Sendable (News) -> Void) {
    self.hear = hear
    let thread = DispatchQueue(label: "keyhole.session")
    thread.async { [weak self] in Self.listen { self } }
  }

  /// Why nothing is heard; nil: something is, or it is not known yet.
  public var failure: String? { problem.withLock { $0 } }

  /// Hears no more.
  public func end() {
    let descriptor = descriptor.exchange(-1, ordering: .relaxed)
    if descriptor >= 0 { shutdown(descriptor, Int32(SHUT_RDWR)) }
  }

  private static func listen(_ watch: () -> SessionWatch?) {
    do throws(SystemBus.Failure) {
      var login = Login(try SystemBus())
      watch()?.descriptor.store(login.bus.descriptor, ordering: .relaxed)
      try login.subscribe()
      while let news = try login.next() {
        guard let watch = watch() else { return }
        watch.problem.withLock { $0 = login.isThere ? nil : Login.missing }
        for news in news { watch.hear(news) }
      }
      throw SystemBus.Failure(reason: "the system bus is gone")
    } catch {
      watch()?.problem.withLock { $0 = error.reason }
    }
  }
}

/// What logind says over the system bus.
private struct Login {
  static let missing = "there is no logind on the system bus"
  private static let name = "org.freedesktop.login1"
  private static let session = "org.freedesktop.login1.Session"
  private static let properties = "org.freedesktop.DBus.Properties"

  /// What an answer will say, and of which session.
  private enum Question {
    case isThere
    case hint(String)
    case user(String, then: SessionWatch.News)
  }

  let bus: SystemBus
  private(set) var isThere = true
  private var questions: [UInt32: Question] = [:]

  init(_ bus: SystemBus) {
    self.bus = bus
  }

  mutating func subscribe() throws(SystemBus.Failure) {
    for rule in [
      "interface='\(Self.name).Manager',member='PrepareForSleep'",
      "interface='\(Self.session)',member='Lock'", "interface='\(Self.session)',member='Unlock'",
      "interface='\(Self.properties)',member='PropertiesChanged',arg0='\(Self.session)'",
    ] {
      try callBus("AddMatch", "type='signal',sender='\(Self.name)',\(rule)")
    }
    questions[try callBus("NameHasOwner", Self.name)] = .isThere
  }

  /// nil: the bus is gone.
  mutating func next() throws(SystemBus.Failure) -> [SessionWatch.News]? {
    let messages = bus.receive()
    guard !messages.isEmpty else { return nil }
    var news: [SessionWatch.News] = []
    for message in messages {
      let heard = try message.kind == .signal ? take(signal: message) : take(answer: message)
      if let heard { news.append(heard) }
    }
    return news
  }

  private mutating func take(signal: BusMessage) throws(SystemBus.Failure) -> SessionWatch.News? {
    switch signal.member {
    case "PrepareForSleep": return signal.number == 1 ? .sleeps : .wakes
    // Everybody's sessions tell: only of the user's own anything follows.
    case "Lock": try ask(.user(signal.path, then: .locked), "User")
    case "Unlock": try ask(.user(signal.path, then: .unlocked), "User")
    case "PropertiesChanged": try ask(.hint(signal.path), "LockedHint")
    default: break
    }
    return nil
  }

  private mutating func take(answer: BusMessage) throws(SystemBus.Failure) -> SessionWatch.News? {
    switch questions.removeValue(forKey: answer.answered) {
    case .isThere: isThere = answer.number == 1
    case .hint(let path):
      guard let hint = answer.number else { return nil }
      try ask(.user(path, then: hint == 1 ? .locked : .unlocked), "User")
    case .user(_, let news):
      // A session that is not known any more may have been the user's: to lock is never wrong.
      let isOwn = answer.number.map { $0 == getuid() }
      return isOwn ?? (news == .locked) ? news : nil
    case nil: break
    }
    return nil
  }

  private mutating func ask(_ question: Question, _ property: String) throws(SystemBus.Failure) {
    let path =
      switch question {
      case .hint(let path), .user(let path, _): path
      case .isThere: ""
      }
    let number = try bus.call(Self.name, path, Self.properties, "Get", [Self.session, property])
    questions[number] = question
  }

  @discardableResult
  private mutating func callBus(_ method: String, _ argument: String) throws(SystemBus.Failure) -> UInt32 {
    let bus = "org.freedesktop.DBus"
    return try self.bus.call(bus, "/org/freedesktop/DBus", bus, method, [argument])
  }
}
