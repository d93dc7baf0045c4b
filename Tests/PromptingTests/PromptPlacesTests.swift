import Testing

@testable import LoginSessions
@testable import Prompting

/// A yes counts where logind says that the user is; a passphrase may be typed elsewhere too.
@Suite struct PromptPlacesTests {
  private static let pty = "/dev/pts/3"

  private static func session(_ change: (inout LoginSession) -> Void) -> LoginSession {
    var session = LoginSession()
    session.isActive = true
    change(&session)
    return session
  }

  private static let onTerminal = session {
    $0.type = "tty"
    $0.terminal = "pts/3"
  }

  private static let window = session {
    $0.type = "x11"
    $0.display = ":0"
  }

  private static func places(
    _ terminal: String?, _ sessions: [LoginSession], failure: String? = nil, manager: [String] = [],
    own: [String] = []
  ) -> PromptPlaces {
    PromptPlaces(
      terminal: terminal, sessions, failure: failure, managerDisplay: { manager }, ownDisplay: own)
  }

  @Test func terminalThatLogindNamesTakesConsent() {
    let places = Self.places(Self.pty, [Self.onTerminal])
    #expect(places.consent == .terminal(Self.pty) && places.typing == .terminal(Self.pty))
  }

  @Test func terminalOfNoSessionTakesOnlyWhatIsTyped() {
    let places = Self.places("/dev/pts/4", [Self.onTerminal])
    #expect(places.consent == nil && places.typing == .terminal("/dev/pts/4"))
    #expect(places.reason.contains("logind names no terminal of theirs here"))
  }

  @Test func withoutLogindThereIsItsReason() {
    let places = Self.places(Self.pty, [], failure: "there is no system bus")
    #expect(places.consent == nil && places.typing == .terminal(Self.pty))
    #expect(places.reason == "there is no system bus")
  }

  @Test func windowOfTheActiveSessionComesFirst() {
    let places = Self.places(
      Self.pty, [Self.onTerminal, Self.window], manager: ["DISPLAY=:9", "XAUTHORITY=/x"])
    #expect(places.consent == .window(["XAUTHORITY=/x", "DISPLAY=:0"]))
    #expect(places.typing == places.consent)
  }

  @Test func displayOfTheServiceManagerIsEnoughWhereLogindKnowsNone() {
    let wayland = Self.session { $0.type = "wayland" }
    #expect(
      Self.places(nil, [wayland], manager: ["WAYLAND_DISPLAY=w"]).consent == .window(["WAYLAND_DISPLAY=w"]))
    #expect(Self.places(nil, [wayland], manager: []).consent == nil)
  }

  @Test(arguments: [
    session {
      $0.type = "x11"
      $0.display = ":0"
      $0.isActive = false
    },
    session {
      $0.type = "x11"
      $0.display = ":0"
      $0.isRemote = true
    },
    session {
      $0.type = "tty"
      $0.display = ":0"
    },
  ])
  func otherSessionHasNoWindow(session: LoginSession) {
    let places = Self.places(nil, [session])
    #expect(places.consent == nil && places.typing == nil)
  }

  /// A program can have made it, and answer there.
  @Test func displayOfTheMountTakesOnlyWhatIsTyped() {
    let places = Self.places(nil, [], own: ["DISPLAY=:5"])
    #expect(places.consent == nil && places.typing == .window(["DISPLAY=:5"]))
    #expect(Self.places(nil, [], own: ["XAUTHORITY=/x"]).typing == nil)
  }
}
