import Platform

/// A session of a user's, as logind knows it.
public struct LoginSession: Sendable {
  /// Whether it is the one before the screen, keyboard and mouse.
  public var isActive = false
  /// `x11`, `wayland`, `tty`, …
  public var type = ""
  /// The X display, such as `:0`; empty: it has none, or logind was not told.
  public var display = ""
  /// Without `/dev/`, such as `tty2` or `pts/0`; empty: it has none.
  public var terminal = ""
  /// Whether it comes from another machine.
  public var isRemote = false

  /// Whether its type is `x11`, `wayland` or `mir`.
  public var isGraphical: Bool { type == "x11" || type == "wayland" || type == "mir" }

  /// For every answer of logind's.
  private static let patience = Duration.seconds(2)
  private static let login = "org.freedesktop.login1"
  private static let mostSessions = 32

  /// Why logind tells nothing, for a person.
  public struct Failure: Error {
    /// The failure, as a clause.
    public let reason: String
  }

  /// This user's sessions. It waits for logind.
  ///
  /// A release asks on the system's bus only, whatever the environment says: a program of the user's could have a bus of
  /// its own, with a logind that names the program's terminal.
  public static func ofUser() throws(Failure) -> [LoginSession] {
    do throws(SystemBus.Failure) {
      let bus = try SystemBus(.fixed)
      bus.patience = patience
      let serial = try bus.call(login, "/org/freedesktop/login1", login + ".Manager", "ListSessions")
      let list = try answer(to: serial, bus)
      guard list.kind == .answer else {
        throw SystemBus.Failure(reason: "there is no logind on the system bus")
      }
      let own = list.sessions.filter { $0.user == User.real }.prefix(mostSessions)
      var sessions: [LoginSession] = []
      for session in own { sessions.append(try fetch(session.path, bus)) }
      return sessions
    } catch {
      throw Failure(reason: error.reason)
    }
  }

  private static func fetch(_ path: String, _ bus: SystemBus) throws(SystemBus.Failure) -> LoginSession {
    var session = LoginSession()
    session.isActive = try property("Active", of: path, bus).number == 1
    session.isRemote = try property("Remote", of: path, bus).number == 1
    session.type = try property("Type", of: path, bus).variantText ?? ""
    session.display = try property("Display", of: path, bus).variantText ?? ""
    session.terminal = try property("TTY", of: path, bus).variantText ?? ""
    return session
  }

  private static func property(
    _ name: String, of path: String, _ bus: SystemBus
  ) throws(SystemBus.Failure) -> BusMessage {
    let serial = try bus.call(
      login, path, "org.freedesktop.DBus.Properties", "Get", [login + ".Session", name])
    return try answer(to: serial, bus)
  }

  private static func answer(to serial: UInt32, _ bus: SystemBus) throws(SystemBus.Failure) -> BusMessage {
    while true {
      let messages = bus.receive()
      guard !messages.isEmpty else { throw SystemBus.Failure(reason: "logind does not answer") }
      if let answer = messages.first(where: { $0.answered == serial }) { return answer }
    }
  }
}
