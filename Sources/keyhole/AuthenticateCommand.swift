import ArgumentParser
import CSystem
import Dispatch
import Glibc
import KeychainSelection
import Model
import SecretMemory
import Store
import Synchronization
import Vault

/// The process that asks a person. The file system's process starts it, and reads its answer.
struct AuthenticateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "authenticate", abstract: "Ask a person before a secret is given.", shouldDisplay: false)

  func run() throws {
    guard Self.isStartedByKeyhole, let request = AuthenticationRequest(reading: STDIN_FILENO) else {
      throw Failure(nil, "`keyhole authenticate` is started by a mount only")
    }
    Self.endWithCaller()
    AuthenticationReply.send(Dialog(request).answer())
  }

  /// Whether the parent is the same program. A mount's process can't be looked into, and is taken for one then.
  ///
  /// So no other program can have Keyhole's dialog show a text of its own by starting this. (One that closes itself to
  /// others, by prctl(2) PR_SET_DUMPABLE, still can; it could as well start pinentry.)
  private static var isStartedByKeyhole: Bool {
    var (own, parent) = (stat(), stat())
    guard unsafe stat("/proc/self/exe", &own) == 0 else { return false }
    guard unsafe stat("/proc/\(getppid())/exe", &parent) == 0 else { return errno == EACCES }
    return own.st_dev == parent.st_dev && own.st_ino == parent.st_ino
  }

  /// The end of standard input, or SIGTERM, means that the question is withdrawn: the dialog leaves its terminal as it
  /// was, and everything in this group ends.
  private static func endWithCaller() {
    _ = signal(SIGTERM, SIG_IGN)
    let terminated = DispatchSource.makeSignalSource(
      signal: SIGTERM, queue: DispatchQueue(label: "keyhole.end"))
    terminated.setEventHandler { end() }
    terminated.activate()
    signals.withLock { $0 = Signals(source: terminated) }
    DispatchQueue(label: "keyhole.input").async {
      var byte: UInt8 = 0
      while unsafe read(STDIN_FILENO, &byte, 1) != 0 {}
      end()
    }
  }

  /// @unchecked: a source is only kept.
  private struct Signals: @unchecked Sendable {
    let source: any DispatchSourceSignal
  }

  private static let signals = Mutex<Signals?>(nil)

  private static func end() {
    Pinentry.endOpen()
    kill(0, SIGKILL)
  }
}

/// What a person is asked, step by step.
private struct Dialog {
  private let request: AuthenticationRequest
  private let places: PromptPlaces
  private static let attempts = 3

  init(_ request: AuthenticationRequest) {
    self.request = request
    places = PromptPlaces(terminal: request.terminal)
  }

  func answer() -> Answer {
    var scope = Answer.Scope.items
    if request.offersProcess {
      guard case .approved(_, let chosen) = askScope() else { return .refused }
      // A consent is given by choosing, where it counts.
      if isConsentHere { return .approved(nil, scope: chosen) }
      scope = chosen
    }
    if let demand = request.demand {
      let answer = self.answer(to: demand)
      guard case .approved = answer else { return answer }
    }
    guard request.password != .none else { return .approved(nil, scope: scope) }
    return askPassword()
  }

  private var isConsentHere: Bool { request.demand == .consent && places.consent != nil }

  /// The process has asked before, and may go through a whole folder.
  private func askScope() -> Answer {
    attempt { () throws(Pinentry.Failure) in
      let more = """
        It has asked before. "Allow all" also lets this process \(request.operation.phrase) every other item with the \
        same conditions, without a question, for \(request.reuse) s.
        """
      // Nothing else is asked afterwards, so Return must not be a yes.
      if isConsentHere {
        switch try pinentry(more.replacing("Allow all", with: "all")).word(of: ["yes", "all"]) {
        case "yes": return .approved(nil)
        case "all": return .approved(nil, scope: .process)
        default: return .refused
        }
      }
      switch try pinentry(more).choose("Allow", "Allow all", "Refuse") {
      case .first: return .approved(nil)
      case .second: return .approved(nil, scope: .process)
      case .refused: return .refused
      }
    }
  }

  private func answer(to demand: Demand) -> Answer {
    switch demand {
    case .consent: return askConsent()
    case .passcode: return askPasscode()
    case .biometry: return askBiometry()
    case .biometryOfSet: return request.demand?.settled(EnrolledSet.digest) == nil ? .revoked : askBiometry()
    case .all(let demands):
      for demand in demands {
        let answer = self.answer(to: demand)
        guard case .approved = answer else { return answer }
      }
      return .approved(nil)
    case .any(let demands): return answer(toAnyOf: demands)
    }
  }

  /// What this machine can't do, or a reader did not recognise, leaves the others.
  private func answer(toAnyOf demands: [Demand]) -> Answer {
    var last = Answer.impossible("no prompt is available")
    for demand in demands {
      last = answer(to: demand)
      switch last {
      case .approved, .refused, .timedOut: return last
      case .rejected where demand == .passcode: return last
      case .rejected, .revoked, .impossible: continue
      }
    }
    return last
  }

  /// A yes, where the program that asks can't give it by itself; elsewhere the passphrase.
  private func askConsent() -> Answer {
    if let place = places.consent {
      return attempt { () throws(Pinentry.Failure) in
        try pinentry("", in: place).confirm(default: .refuse) ? .approved(nil) : .refused
      }
    }
    let answer = askPasscode()
    guard case .impossible(let reason) = answer else { return answer }
    return .impossible(
      "a plain yes counts only in a window of your session or on a terminal that logind names, and not here: "
        + "\(places.reason); and there is no passphrase to type instead: \(reason)")
  }

  private func askBiometry() -> Answer {
    guard PAM.hasService(PAM.biometry) else { return .impossible("PAM has no service \(PAM.biometry)") }
    let confirmation = attempt { () throws(Pinentry.Failure) in
      try pinentry("Then use the reader.").confirm(default: .allow) ? .approved(nil) : .refused
    }
    if case .refused = confirmation { return .refused }
    return PAM.authenticate(PAM.biometry) { _ in nil } ? .approved(nil) : .rejected
  }

  /// The vault's passphrase; where it has none, what PAM's service `keyhole` wants to know.
  private func askPasscode() -> Answer {
    // Not to make one where there is none.
    guard unsafe access(request.vault + "/vault.db", F_OK) == 0 else { return askByPAM() }
    guard let vault = try? VaultEngine(directory: request.vault, stateDirectory: request.state) else {
      return .impossible("the vault can't be opened")
    }
    guard vault.needsPassphrase else { return askByPAM() }
    return ask("Passphrase:") { passphrase in (try? vault.check(passphrase)) != nil }
  }

  private func askByPAM() -> Answer {
    guard PAM.hasService(PAM.passcode) else {
      return .impossible("the vault has no passphrase, and PAM no service \(PAM.passcode)")
    }
    return attempt { () throws(Pinentry.Failure) in
      let pinentry = try pinentry("")
      for failures in 0..<Self.attempts {
        var failure: Pinentry.Failure?
        let isRight = PAM.authenticate(PAM.passcode) { prompt in
          do throws(Pinentry.Failure) {
            return try pinentry.secret(prompt, error: failures == 0 ? nil : "That was wrong.")
          } catch {
            failure = error
            return nil
          }
        }
        if isRight { return .approved(nil) }
        if let failure { throw failure }
      }
      return .rejected
    }
  }

  private func ask(_ prompt: String, _ isRight: (borrowing SecretBytes) -> Bool) -> Answer {
    attempt { () throws(Pinentry.Failure) in
      let pinentry = try pinentry("To agree, type the passphrase of the vault.")
      for failures in 0..<Self.attempts {
        let secret = try pinentry.secret(prompt, error: failures == 0 ? nil : "That was wrong.")
        if isRight(secret) { return .approved(nil) }
      }
      return .rejected
    }
  }

  private func askPassword() -> Answer {
    attempt { () throws(Pinentry.Failure) in
      guard request.password != .new else {
        let chosen = try pinentry("Choose a password for this item.").newSecret("Password:")
        return chosen.isEmpty ? .refused : .approved(ItemPassword(chosen))
      }
      let error = request.failures == 0 ? nil : "That was wrong."
      let secret = try pinentry("").secret("Password:", error: error)
      return secret.isEmpty ? .refused : .approved(ItemPassword(secret))
    }
  }

  private func attempt(_ body: () throws(Pinentry.Failure) -> Answer) -> Answer {
    do throws(Pinentry.Failure) {
      return try body()
    } catch {
      switch error {
      case .cancelled, .notConfirmed: return .refused
      case .late: return .timedOut
      case .missing: return .impossible("there is neither a display nor a terminal with a pinentry")
      case .broken: return .impossible("the pinentry has failed")
      }
    }
  }

  /// A dialog in which the person types, or uses the reader.
  private func pinentry(_ more: String) throws(Pinentry.Failure) -> Pinentry {
    guard let place = places.typing else { throw .missing }
    return try pinentry(more, in: place)
  }

  private func pinentry(_ more: String, in place: PromptPlace) throws(Pinentry.Failure) -> Pinentry {
    try Pinentry(
      place, type: TerminalType.of(request.process), title: "Keyhole", text: text(more),
      seconds: request.timeout)
  }

  /// The program comes first, then what it wants. The command line is what the program shows.
  private func text(_ more: String) -> String {
    var lines = ["Program: \(request.program)"]
    lines += request.script.map { ["Script: \($0)"] } ?? []
    lines += ["Command: \(request.command.prefix(300))", "Started by: \(request.parents)", purpose]
    lines += request.items.map { "  \($0)" }
    if request.others > 0 { lines.append("  and \(request.others) more") }
    lines += request.changes.map { "  \($0.prefix(300))" }
    // A window shows a name in Hebrew or Arabic from right to left, and would turn what stands beside it.
    lines = lines.map(\.inReadingOrder) + warnings
    if request.reuse > 0 {
      lines.append("Your answer holds for this process and what is named here for \(request.reuse) s.")
    }
    return (lines + [more]).joined(separator: "\n")
  }

  private var purpose: String {
    guard request.operation == .change else {
      return "It wants to \(request.operation.phrase) a secret of Keyhole:"
    }
    if request.password == .new { return "It wants to give an item of Keyhole a password of its own:" }
    return request.removesProtection
      ? "It wants to TAKE THE PROTECTION OFF a secret of Keyhole:"
      : "It wants to change the protection of a secret of Keyhole:"
  }

  /// A rule for `keyhole` itself lets in every program that can start it.
  private var warnings: [String] {
    guard request.changes.contains(where: RuleWarning.allowsKeyhole) else { return [] }
    return [RuleWarning.text]
  }
}

extension AccessOperation {
  /// For sentences: "it wants to read a secret".
  fileprivate var phrase: String {
    switch self {
    case .read: "read"
    case .write: "replace"
    case .readWrite: "read and replace"
    case .change, .record: "change the protection of"
    }
  }
}

/// PAM for this process's user.
enum PAM {
  static let passcode = "keyhole"
  static let biometry = "keyhole-biometry"

  /// Without a file of its own, a service would get what `other` says.
  static func hasService(_ name: String) -> Bool {
    var folders = ["/etc/pam.d", "/usr/local/etc/pam.d", "/usr/lib/pam.d"]
    #if DEBUG
      // Tests have services of their own; a release has no such switch.
      folders += environment("PAM_WRAPPER_SERVICE_DIR").map { [$0] } ?? []
    #endif
    return folders.contains { unsafe access("\($0)/\(name)", R_OK) == 0 }
  }

  /// `answer` gets what PAM wants to know; nil gives up.
  static func authenticate(_ service: String, _ answer: (String) -> SecretBytes?) -> Bool {
    guard let entry = unsafe getpwuid(getuid()), let name = unsafe entry.pointee.pw_name else { return false }
    return withoutActuallyEscaping(answer) { answer in
      let box = Box(answer)
      return withExtendedLifetime(box) {
        unsafe linux_pam_authenticate(
          service, name,
          { context, style, message, buffer, size in
            guard let context = unsafe context, let buffer = unsafe buffer else { return 1 }
            // SAFETY: the box outlives the call that was given it.
            let box = unsafe Unmanaged<Box>.fromOpaque(context).takeUnretainedValue()
            let text = unsafe message.map { unsafe String(cString: $0) } ?? ""
            return unsafe box.converse(style, text, UnsafeMutableRawBufferPointer(start: buffer, count: size))
          }, Unmanaged.passUnretained(box).toOpaque()) == 0
      }
    }
  }

  private final class Box {
    private let answer: (String) -> SecretBytes?

    init(_ answer: @escaping (String) -> SecretBytes?) {
      self.answer = answer
    }

    /// 1 and 2: PAM_PROMPT_ECHO_OFF and _ON; what is only told has no answer.
    func converse(_ style: Int32, _ text: String, _ buffer: UnsafeMutableRawBufferPointer) -> Int32 {
      guard style == 1 || style == 2 else { return 0 }
      guard let secret = answer(text), secret.count < buffer.count else { return 1 }
      unsafe secret.withUnsafeBytes { unsafe buffer.copyMemory(from: $0) }
      return 0
    }
  }
}
