import Glibc
import LoginSessions
import SecretMemory

/// Where a person is asked.
enum PromptPlace {
  /// Windows on a display: the variables that lead to it.
  case window([String])
  /// The device of a terminal, such as `/dev/pts/3`.
  case terminal(String)
}

/// The places where a person can be asked, as they are at the time of asking.
///
/// A program that asks for a secret can make a terminal (openpty(3)) or a display (Xvfb) of its own, and answer there by
/// itself. So plain consent counts only in a place that logind knows of: a window of the user's active session, or the
/// terminal of one of the user's sessions. Elsewhere the person has to type what the program does not know.
struct PromptPlaces {
  /// Where plain consent counts; nil: nowhere.
  let consent: PromptPlace?
  /// Where a passphrase or a password can be typed; nil: nowhere.
  let typing: PromptPlace?
  /// Why plain consent counts nowhere.
  let reason: String

  /// `terminal`: the controlling terminal of the program that asks; nil: it has none.
  init(terminal: String?) {
    let sessions: [LoginSession]
    var reason = "this user has no active session with a window, and logind names no terminal of theirs here"
    do throws(LoginSession.Failure) {
      sessions = try LoginSession.ofUser()
    } catch {
      sessions = []
      reason = error.reason
    }
    let trusted = Self.window(sessions) ?? Self.terminal(terminal, sessions)
    consent = trusted
    typing = trusted ?? terminal.map(PromptPlace.terminal) ?? Self.ownDisplay()
    self.reason = reason
  }

  private static func terminal(_ device: String?, _ sessions: [LoginSession]) -> PromptPlace? {
    guard let device, sessions.contains(where: { "/dev/" + $0.terminal == device }) else { return nil }
    return .terminal(device)
  }

  private static func window(_ sessions: [LoginSession]) -> PromptPlace? {
    guard let session = sessions.first(where: { $0.isActive && $0.isGraphical && !$0.isRemote }) else {
      return nil
    }
    var variables = UserManager.displayVariables()
    if !session.display.isEmpty {
      variables.removeAll { $0.hasPrefix("DISPLAY=") }
      variables.append("DISPLAY=" + session.display)
    }
    return hasDisplay(variables) ? .window(variables) : nil
  }

  private static func hasDisplay(_ variables: [String]) -> Bool {
    variables.contains { $0.hasPrefix("DISPLAY=") || $0.hasPrefix("WAYLAND_DISPLAY=") }
  }

  /// The display that the mount was started on: for passphrases only, which no program can answer.
  private static func ownDisplay() -> PromptPlace? {
    let variables = UserManager.display.compactMap { name in environment(name).map { "\(name)=\($0)" } }
    return hasDisplay(variables) ? .window(variables) : nil
  }
}

/// The user's service manager, which knows the display of the session, also when it came up after the mount.
enum UserManager {
  static let display = ["DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY"]

  static var runtimeFolder: String { "/run/user/\(getuid())" }

  static var variables: [String] {
    ["XDG_RUNTIME_DIR=\(runtimeFolder)", "DBUS_SESSION_BUS_ADDRESS=unix:path=\(runtimeFolder)/bus"]
  }

  /// Of its environment what leads to the display; empty where there is no such manager.
  static func displayVariables() -> [String] {
    guard unsafe access(runtimeFolder + "/systemd", F_OK) == 0 else { return [] }
    let words = ["/usr/bin/systemctl", "--user", "show-environment"]
    guard let child = try? Child(words, input: .piped, environment: variables) else { return [] }
    defer { child.end() }
    child.closeInput()
    guard child.waitForEnd(seconds: 2),
      let text = try? SecretInput.read(descriptor: child.output, limit: 65536)
    else { return [] }
    let lines = unsafe text.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }.split(
      separator: "\n")
    return lines.map(String.init).filter { line in display.contains { line.hasPrefix($0 + "=") } }
  }
}

/// A variable of this process that is not empty.
func environment(_ name: String) -> String? {
  unsafe getenv(name).map { unsafe String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
}
