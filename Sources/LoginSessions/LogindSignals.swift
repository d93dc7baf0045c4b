import Platform

/// The messages of logind over the system bus.
struct LogindSignals {
  static let missing = "there is no logind on the system bus"
  private static let name = "org.freedesktop.login1"
  private static let manager = "org.freedesktop.login1.Manager"
  private static let managerPath = "/org/freedesktop/login1"
  private static let session = "org.freedesktop.login1.Session"
  private static let busName = "org.freedesktop.DBus"
  private static let properties = "org.freedesktop.DBus.Properties"

  /// The meaning of a reply, and its session.
  private enum Question {
    case isThere
    case hint(String)
    case user(String, then: SessionWatch.News)
    case delay
  }

  let bus: SystemBus
  private(set) var isThere = true
  /// Why sleep does not wait; nil: it does.
  private(set) var delayFailure: String? = "logind has not answered yet"
  private var questions: [UInt32: Question] = [:]
  /// While this is open, the machine does not sleep; nil: nothing holds it up.
  private var delay: PassedDescriptor?
  private var isAboutToSleep = false

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
    // One that was restarted knows of no delay.
    let owner = "interface='\(Self.busName)',member='NameOwnerChanged',arg0='\(Self.name)'"
    try callBus("AddMatch", "type='signal',sender='\(Self.busName)',\(owner)")
    questions[try callBus("NameHasOwner", Self.name)] = .isThere
  }

  /// Lets go of what holds up sleep.
  mutating func letSleep() {
    delay = nil
  }

  /// Has sleep wait for the lock, until `letSleep`.
  private mutating func holdUpSleep() throws(SystemBus.Failure) {
    guard delay == nil else { return }
    let number = try bus.call(
      Self.name, Self.managerPath, Self.manager, "Inhibit",
      ["sleep", "Keyhole", "It locks the keychain before the machine sleeps", "delay"])
    questions[number] = .delay
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
    case "PrepareForSleep":
      isAboutToSleep = signal.number == 1
      if isAboutToSleep { return .sleeps }
      try holdUpSleep()
      return .wakes
    case "NameOwnerChanged": try takeOwner(of: signal)
    // Signals come from the sessions of all users: only the user's own count.
    case "Lock": try ask(.user(signal.path, then: .locked), "User")
    case "Unlock": try ask(.user(signal.path, then: .unlocked), "User")
    case "PropertiesChanged": try ask(.hint(signal.path), "LockedHint")
    default: break
    }
    return nil
  }

  private mutating func take(answer: BusMessage) throws(SystemBus.Failure) -> SessionWatch.News? {
    switch questions.removeValue(forKey: answer.answered) {
    case .isThere:
      isThere = answer.number == 1
      if isThere { try holdUpSleep() }
    case .delay: takeDelay(answer)
    case .hint(let path):
      guard let hint = answer.number else { return nil }
      try ask(.user(path, then: hint == 1 ? .locked : .unlocked), "User")
    case .user(_, let news):
      // A session that is not known any more may have been the user's: to lock is never wrong.
      let isOwn = answer.number.map { $0 == User.real }
      return isOwn ?? (news == .locked) ? news : nil
    case nil: break
    }
    return nil
  }

  private mutating func takeOwner(of signal: BusMessage) throws(SystemBus.Failure) {
    guard signal.texts.first == Self.name else { return }
    isThere = signal.texts.last?.isEmpty == false
    letSleep()
    delayFailure = Self.missing
    if isThere { try holdUpSleep() }
  }

  private mutating func takeDelay(_ answer: BusMessage) {
    letSleep()
    delay = bus.takeDescriptor(of: answer)
    delayFailure = delay == nil ? "logind says: \(answer.texts.first ?? "no reason")" : nil
    // Too late for this time.
    if isAboutToSleep { letSleep() }
  }

  private mutating func ask(_ question: Question, _ property: String) throws(SystemBus.Failure) {
    let path =
      switch question {
      case .hint(let path), .user(let path, _): path
      case .isThere, .delay: ""
      }
    let number = try bus.call(Self.name, path, Self.properties, "Get", [Self.session, property])
    questions[number] = question
  }

  @discardableResult
  private mutating func callBus(_ method: String, _ argument: String) throws(SystemBus.Failure) -> UInt32 {
    try bus.call(Self.busName, "/org/freedesktop/DBus", Self.busName, method, [argument])
  }
}
