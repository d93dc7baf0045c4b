import Model
import Platform
import SecretMemory
import Synchronization

/// A dialog of GnuPG's pinentry, spoken to in the Assuan protocol.
package final class Pinentry {
  enum Failure: Error {
    case missing
    case cancelled
    /// The button that is neither the first nor the cancelling one.
    case notConfirmed
    case late
    case broken
  }

  private static let again = "Once more:"

  /// Where pinentry stands; never by PATH, which a program of the user's may have set for the mount.
  private static let folders = ["/usr/bin", "/usr/local/bin", "/bin"]
  /// How long it may take to end by itself, in seconds.
  static let patience = 1
  /// The dialog that is open in this process.
  static let open = Mutex<OpenDialog?>(nil)

  private let program: Child
  /// The reply to GETINFO: `curses`, `gtk2`, `gnome3`, `qt`, …
  private let flavor: String
  /// nil: it is a window.
  private let terminal: TerminalState?
  /// The dialog had the last secret typed twice.
  private var hasRepeated = false

  /// The pinentries that open windows, where the one that is called `pinentry` opens none.
  static let windowed = ["qt", "qt5", "gtk-2", "gnome3", "fltk", "efl"].map { "/usr/bin/pinentry-" + $0 }

  /// Opens a dialog in a place. Where `pinentry` can't open a window, another one does that root has installed.
  ///
  /// - Throws: as `init(_:_:type:title:text:seconds:)`.
  static func begin(
    _ place: PromptPlace, type: String?, title: String, text: String, seconds: Int
  ) throws(Failure) -> Pinentry {
    let named = Self.program(for: place)
    var programs = named.map { [$0] } ?? []
    if case .window = place { programs += windowed.filter(isOfRoot) }
    var failure = Failure.missing
    for program in programs {
      do throws(Failure) {
        return try Pinentry(program, place, type: type, title: title, text: text, seconds: seconds)
      } catch {
        failure = error
      }
    }
    throw failure
  }

  /// Whether only root can have put it there: the dialog gets the passphrase.
  private static func isOfRoot(_ path: String) -> Bool {
    guard Files.allows(.execute, path), let status = try? Files.status(path) else { return false }
    return status.owner == 0 && status.permissions & 0o022 == 0
  }

  /// Opens a dialog in a place.
  ///
  /// In a window it is not told of a terminal: it would fall back to that, which may be the asking program's own.
  /// - Throws: `missing` where the program can't be started, `broken` where it can't open a window.
  private init(
    _ path: String, _ place: PromptPlace, type: String?, title: String, text: String, seconds: Int
  ) throws(Failure) {
    guard let program = Self.start(path, place) else { throw .missing }
    self.program = program
    if case .terminal(let device) = place { terminal = TerminalState(device) } else { terminal = nil }
    Self.open.withLock { [program, terminal] in
      $0 = OpenDialog(process: program.process, terminal: terminal)
    }
    do throws(Failure) {
      guard try Self.readLine(program).hasPrefix("OK") else { throw .broken }
      let (flavor, fallback) = Self.flavor(of: program)
      // It says so where it has no session bus or no display, as `gnome3:curses`.
      if case .window = place, fallback != nil || ["curses", "tty"].contains(flavor) { throw .broken }
      self.flavor = flavor
    } catch {
      Self.endOpen()
      program.end()
      throw error
    }
    do throws(Failure) {
      if case .terminal(let device) = place {
        _ = try? command("OPTION ttyname=\(device)")
        _ = try? command("OPTION ttytype=\(type ?? environment("TERM") ?? "xterm")")
        _ = try? command("OPTION lc-ctype=\(environment("LC_ALL") ?? "C.UTF-8")")
      }
      // It ends by itself, and leaves its terminal as it was, before this process is ended.
      _ = try? command("SETTIMEOUT \(max(2, seconds) - 1)")
      try command("SETTITLE " + Assuan.escaped(title))
      try command("SETDESC " + Assuan.escaped(text))
    } catch {
      Self.endOpen()
      program.end()
      throw error
    }
  }

  deinit {
    program.closeInput()
    Self.endOpen()
    program.end()
  }

  /// The effect of Return in a question.
  enum Default {
    case allow
    case refuse
  }

  /// Whether a person says yes. - Throws: `late`, `broken`.
  func confirm(default choice: Default) throws(Failure) -> Bool {
    guard choice == .refuse else { return try confirm() }
    // The prompter of GNOME knows two buttons only, and Return is the one that allows.
    guard hasThreeButtons else { return try word(of: ["yes"]) != nil }
    try command("SETOK Refuse")
    try command("SETNOTOK Allow")
    do throws(Failure) {
      try show()
      return false
    } catch .notConfirmed {
      return true
    } catch .cancelled {
      return false
    }
  }

  private func confirm() throws(Failure) -> Bool {
    try command("SETOK Allow")
    try command("SETCANCEL Refuse")
    do throws(Failure) {
      try show()
      return true
    } catch .cancelled {
      return false
    } catch .notConfirmed {
      return false
    }
  }

  /// Which of these words a person types, in small letters or capital ones; nil: nothing. So neither Return nor Escape is a yes. Another word is
  /// asked for again, three times in all.
  ///
  /// - Throws: as `secret`.
  func word(of words: [String]) throws(Failure) -> String? {
    let known = words.joined(separator: " or ")
    var error: String?
    for _ in 0..<3 {
      let typed = try secret("Type \(known):", error: error)
      guard typed.count > 0 else { return nil }
      if let word = words.first(where: { $0.utf8.span.hasSameLetters(as: typed.span) }) { return word }
      error = "It is \(known), or nothing to refuse."
    }
    return nil
  }

  /// Whether it has a third button. The prompter of GNOME has two.
  var hasThreeButtons: Bool { flavor != "gnome3" && flavor != "unknown" }

  enum Choice {
    case first
    case second
    case refused
  }

  /// Which of two answers a person chooses, if any. A pinentry without a third button does not offer the second.
  ///
  /// - Throws: `late`, `broken`.
  func choose(_ first: String, _ second: String, _ refuse: String) throws(Failure) -> Choice {
    do throws(Failure) {
      try command("SETOK " + Assuan.escaped(first))
      try command("SETNOTOK " + Assuan.escaped(second))
      try command("SETCANCEL " + Assuan.escaped(refuse))
      try show()
      return .first
    } catch .cancelled {
      return .refused
    } catch .notConfirmed {
      return .second
    }
  }

  /// The text that the user types. - Throws: `cancelled`, `late`, `broken`.
  func secret(_ prompt: String, error: String? = nil) throws(Failure) -> SecretBytes {
    if let error { try command("SETERROR " + Assuan.escaped(error)) }
    try command("SETPROMPT " + Assuan.escaped(prompt))
    terminal?.dropInput()
    send("GETPIN")
    guard var secret = try? SecretBytes() else { throw .broken }
    while true {
      guard let line = try? SecretInput.readLine(descriptor: program.output) else { throw .broken }
      if try take(line.span, into: &secret) { return secret }
    }
  }

  /// The text that the user types twice, to be sure of it. - Throws: as `secret`.
  func newSecret(_ prompt: String) throws(Failure) -> SecretBytes {
    var error: String?
    while true {
      _ = try? command("SETREPEAT " + Assuan.escaped(Self.again))
      hasRepeated = false
      let first = try secret(prompt, error: error)
      // Not every pinentry can ask twice by itself; which can says so.
      if hasRepeated { return first }
      let second = try secret(Self.again)
      if first == second { return second }
      error = "The two were not the same."
    }
  }
}

extension Pinentry {
  /// True: the answer is complete.
  private func take(_ line: Span<UInt8>, into secret: inout SecretBytes) throws(Failure) -> Bool {
    if line.starts(with: "S PIN_REPEATED") { hasRepeated = true }
    if try Assuan.append(line, to: &secret) { return false }
    return try Assuan.isOK(line.extracting(..<min(64, line.count)).text)
  }

  /// The program for a place; nil: there is none.
  private static func program(for place: PromptPlace) -> String? {
    var names = ["pinentry"]
    if case .terminal = place { names = ["pinentry-curses", "pinentry-tty", "pinentry"] }
    let paths = names.flatMap { name in programFolders.map { "\($0)/\(name)" } }
    return paths.first { Files.allows(.execute, $0) }
  }

  private static func start(_ path: String, _ place: PromptPlace) -> Child? {
    var variables = baseEnvironment
    if case .window(let display) = place { variables += display }
    return try? Child([path], input: .pipedInOurGroup, environment: variables)
  }

  /// The folders of the programs that are taken, also where PATH has others.
  package static var programFolders: [String] {
    #if DEBUG
      // Tests have stand-ins; a release has no such switch.
      (environment("PATH") ?? "").split(separator: ":").map(String.init) + folders
    #else
      folders
    #endif
  }

  /// The variables of the environment that a dialog needs; it gets no others of the mount.
  private static var baseEnvironment: [String] {
    let kept = ["HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES"].compactMap { name in
      environment(name).map { "\(name)=\($0)" }
    }
    let hasManager = Files.exists(UserManager.runtimeFolder)
    return kept + ["PATH=/usr/local/bin:/usr/bin:/bin"] + (hasManager ? UserManager.variables : [])
  }

  private static func flavor(of program: Child) -> (name: String, fallback: String?) {
    send("GETINFO flavor", to: program)
    var (flavor, fallback) = ("unknown", String?.none)
    while let line = try? readLine(program) {
      if line.hasPrefix("D ") {
        let parts = line.dropFirst(2).split(separator: ":", maxSplits: 1).map(String.init)
        (flavor, fallback) = (parts.first ?? flavor, parts.count > 1 ? parts[1] : nil)
      }
      if line.hasPrefix("OK") || line.hasPrefix("ERR") { break }
    }
    return (flavor, fallback)
  }

  private func send(_ line: String) {
    Self.send(line, to: program)
  }

  private static func send(_ line: String, to program: Child) {
    try? Files.write(Array((line + "\n").utf8).span, to: program.input)
  }

  /// Shows the question with its buttons, and waits for one.
  private func show() throws(Failure) {
    terminal?.dropInput()
    try command("CONFIRM")
  }

  private func command(_ line: String) throws(Failure) {
    send(line)
    while try !Assuan.isOK(Self.readLine(program)) {}
  }

  private static func readLine(_ program: Child) throws(Failure) -> String {
    guard let line = try? SecretInput.readLine(descriptor: program.output), !line.isEmpty else {
      throw .broken
    }
    return line.span.text
  }
}

extension Span<UInt8> {
  /// Whether both are the same but for small and capital letters of ASCII; this one has no other bytes than letters.
  fileprivate func hasSameLetters(as other: Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    for index in indices where self[index] | 0x20 != other[index] | 0x20 { return false }
    return true
  }
}
