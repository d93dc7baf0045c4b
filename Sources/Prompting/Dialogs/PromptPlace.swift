import Dispatch
import LoginSessions
import Platform
import Store

/// Where a person is asked.
enum PromptPlace: Equatable {
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
package struct PromptPlaces {
  /// Where plain consent counts; nil: nowhere.
  let consent: PromptPlace?
  /// Where a passphrase or a password can be typed; nil: nowhere.
  let typing: PromptPlace?
  /// Why plain consent counts nowhere.
  let reason: String

  /// Why the process itself can't be asked for a plain yes, in a window or on its terminal; nil: it can.
  package static var whyNoConsentHere: String? {
    let places = PromptPlaces(
      terminal: terminal(of: CurrentProcess.number, Caller.current.identity().terminal))
    return places.consent == nil ? places.reason : nil
  }

  /// The controlling terminal of a process; nil where the process is stopped or in the background: the keys are for the
  /// program in the foreground.
  static func terminal(of process: Int32, _ device: String?) -> String? {
    // A shell may give a job the terminal when it runs already.
    for _ in 0..<patience {
      guard process != 0, ProcessFiles(process).status?.mayUseTerminal == false else { return device }
      _ = DispatchSemaphore(value: 0).wait(timeout: .now() + .milliseconds(50))
    }
    return nil
  }

  private static let patience = 6

  /// `terminal`: the controlling terminal of the program that asks; nil: it has none, or may not use it.
  init(terminal: String?) {
    var sessions: [LoginSession] = []
    var failure: String?
    do throws(LoginSession.Failure) { sessions = try LoginSession.ofUser() } catch { failure = error.reason }
    self.init(
      terminal: terminal, sessions, failure: failure, managerDisplay: UserManager.displayVariables,
      ownDisplay: UserManager.ownDisplayVariables)
  }

  /// `failure`: why logind tells no sessions. `managerDisplay`: the variables of the display as the user's service
  /// manager has them. `ownDisplay`: those that this process was started with; a passphrase may be asked for there,
  /// which no program can answer.
  init(
    terminal: String?, _ sessions: [LoginSession], failure: String?, managerDisplay: () -> [String],
    ownDisplay: [String]
  ) {
    consent = Self.window(sessions, managerDisplay) ?? Self.terminal(terminal, sessions)
    let display: PromptPlace? = Self.hasDisplay(ownDisplay) ? .window(ownDisplay) : nil
    typing = consent ?? terminal.map(PromptPlace.terminal) ?? display
    reason =
      failure ?? "this user has no active session with a window, and logind names no terminal of theirs here"
  }

  private static func terminal(_ device: String?, _ sessions: [LoginSession]) -> PromptPlace? {
    guard let device, sessions.contains(where: { "/dev/" + $0.terminal == device }) else { return nil }
    return .terminal(device)
  }

  private static func window(
    _ sessions: [LoginSession], _ managerDisplay: () -> [String]
  ) -> PromptPlace? {
    guard let session = sessions.first(where: { $0.isActive && $0.isGraphical && !$0.isRemote }) else {
      return nil
    }
    var variables = managerDisplay()
    if !session.display.isEmpty {
      variables.removeAll { $0.hasPrefix("DISPLAY=") }
      variables.append("DISPLAY=" + session.display)
    }
    return hasDisplay(variables) ? .window(variables) : nil
  }

  private static func hasDisplay(_ variables: [String]) -> Bool {
    variables.contains { $0.hasPrefix("DISPLAY=") || $0.hasPrefix("WAYLAND_DISPLAY=") }
  }
}
