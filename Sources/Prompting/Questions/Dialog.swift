import ClusterRecords
import KeychainSelection
import Model
import Platform
import PromptHelper
import SecretMemory
import Store
import Vault

/// The questions to the user, step by step.
struct Dialog {
  private var request: AuthenticationRequest
  private let places: PromptPlaces
  /// Whether the program that asks has a terminal that it may not use now.
  private let isInBackground: Bool
  /// nil: the question offers nothing but "once".
  private let choices: DialogChoices?
  private let more: MoreChoices
  private static let attempts = 3

  /// Whether a dialog that asks for a proof leads to further choices, and whether the person wanted them.
  private final class MoreChoices {
    var isOffered: Bool
    var isWanted = false
    /// The chosen answer that holds longer, with its effect: the dialogs that ask for its proof name it.
    var chosen: String?

    init(isOffered: Bool) { self.isOffered = isOffered }
  }

  init(_ request: AuthenticationRequest) {
    self.request = request
    let terminal = PromptPlaces.terminal(of: request.process, request.terminal)
    places = PromptPlaces(terminal: terminal)
    isInBackground = request.terminal != nil && terminal == nil
    choices = request.password == .new ? nil : DialogChoices(request, places)
    more = MoreChoices(isOffered: choices != nil)
  }

  /// The device of the terminal that the person is asked on; nil: they are asked in a window, or nowhere.
  var terminal: String? {
    guard case .terminal(let device)? = places.typing else { return nil }
    return device
  }

  /// Has the dialogs that follow name the answer that was chosen.
  func show(chosen: String) { more.chosen = chosen }

  /// The password of the last answer was wrong: the next one is for that password alone, as the rest of the demand is met.
  /// False: no try is left.
  mutating func noteWrongPassword() -> Bool {
    request.failures += 1
    request.demand = nil
    return request.failures < Self.attempts
  }

  func answer() -> Answer {
    if request.password == .vault { return askToUnlock() }
    guard let choices else { return proof(.items) }
    if choices.isConsentHere {
      return proceed(
        with: attempt { () throws(Pinentry.Failure) in try choices.ask(in: self) }, hasConsent: true)
    }
    let answer = proof(.items)
    guard more.isWanted else { return answer }
    more.isOffered = false
    return proceed(with: attempt { () throws(Pinentry.Failure) in try choices.askInWords(in: self) })
  }

  /// Asks for what a chosen answer demands.
  private func proceed(with choice: Answer, hasConsent: Bool = false) -> Answer {
    switch choice {
    case .approved(_, let scope): return proof(scope, hasConsent: hasConsent)
    case .never:
      // Without the proof no rule is written, and the program is refused all the same.
      guard case .approved = proof(.always, hasConsent: hasConsent) else { return .refused }
      return .never
    default: return choice
    }
  }

  /// Asks for the proof that an answer of this scope demands. `hasConsent`: a yes was given by the choice.
  private func proof(_ scope: Answer.Scope, hasConsent: Bool = false) -> Answer {
    var demand = request.demand
    // A change of the rules may demand more than the question does.
    if scope == .always, let rule = request.rule?.demand { demand = rule }
    if let demand, !(hasConsent && demand == .consent) {
      let answer = self.answer(to: demand)
      guard case .approved = answer else { return answer }
    }
    guard request.password != .none else { return .approved(nil, scope: scope) }
    return askPassword()
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

  /// A factor that this machine does not have, or that a reader did not recognise, leaves the others.
  private func answer(toAnyOf demands: [Demand]) -> Answer {
    var (last, reasons) = (Answer.impossible("no prompt is available"), [String]())
    for demand in demands {
      last = answer(to: demand)
      if case .impossible(let reason) = last, !reasons.contains(reason) { reasons.append(reason) }
      switch last {
      case .approved, .refused, .never, .timedOut: return last
      case .rejected where demand == .passcode: return last
      case .rejected, .revoked, .locked, .impossible: continue
      }
    }
    guard case .impossible = last else { return last }
    return .impossible(reasons.joined(separator: ", and "))
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
      let pinentry = try pinentry("Then use the reader.")
      guard more.isOffered, pinentry.hasThreeButtons else {
        return try pinentry.confirm(default: .allow) ? .approved(nil) : .refused
      }
      let choice = try pinentry.choose("Allow once", "More choices", "Refuse")
      more.isWanted = choice == .second
      return choice == .first ? .approved(nil) : .refused
    }
    if case .refused = confirmation { return .refused }
    return PAM.authenticate(PAM.biometry) { _ in nil } ? .approved(nil) : .rejected
  }

  /// The vault's passphrase; where it has none, what PAM's service `keyhole` wants to know.
  private func askPasscode() -> Answer {
    if let device = request.device { return askPasscode(of: device) }
    // Not to make one where there is none.
    guard Files.exists(request.vault + "/vault.db") else { return askByPAM() }
    guard let vault = try? VaultEngine(directory: request.vault, stateDirectory: request.state) else {
      return .impossible("the vault can't be opened")
    }
    guard vault.needsPassphrase else { return askByPAM() }
    return ask("Passphrase:") { passphrase in (try? vault.check(passphrase)) != nil }
  }

  /// The passphrase of this device in the store of a cluster; where it has none, as `askByPAM`.
  private func askPasscode(of device: [UInt8]) -> Answer {
    guard let record = try? DeviceRecord(device.span) else {
      return .impossible("this device's keys can't be read")
    }
    guard record.takesPassphrase else { return askByPAM() }
    return ask("Passphrase:", "this device, which opens the cluster's store") { passphrase in
      (try? record.open(passphrase)) != nil
    }
  }

  private func askByPAM() -> Answer {
    guard PAM.hasService(PAM.passcode) else {
      return .impossible(
        "the vault has no passphrase, and PAM no service \(PAM.passcode); "
          + "`keyhole passphrase` sets a passphrase")
    }
    return attempt { () throws(Pinentry.Failure) in
      let pinentry = try pinentry("")
      for failures in 0..<Self.attempts {
        var failure: Pinentry.Failure?
        let isRight = PAM.authenticate(PAM.passcode) { prompt in
          do throws(Pinentry.Failure) {
            return try pinentry.secret(prompt, error: Self.wrong("That was wrong", failures))
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

  private func ask(
    _ prompt: String, _ owner: String = "the vault", _ isRight: (borrowing SecretBytes) -> Bool
  ) -> Answer {
    attempt { () throws(Pinentry.Failure) in
      let pinentry = try pinentry(
        "To agree, type the passphrase of \(owner)."
          + (more.isOffered ? " Leave it empty for more choices: \(choices?.words ?? "")." : ""))
      for failures in 0..<Self.attempts {
        let secret = try pinentry.secret(prompt, error: Self.wrong("Wrong passphrase", failures))
        if secret.isEmpty, more.isOffered {
          more.isWanted = true
          return .refused
        }
        if isRight(secret) { return .approved(nil) }
      }
      return .rejected
    }
  }

  /// The passphrase itself, which the process that asks unlocks its vault with.
  private func askToUnlock() -> Answer {
    attempt { () throws(Pinentry.Failure) in
      let error = Self.wrong("Wrong passphrase", request.failures)
      let secret = try pinentry(extent).secret("Passphrase:", error: error)
      return secret.isEmpty ? .refused : .approved(ItemPassword(secret))
    }
  }

  /// nil: nothing was wrong yet.
  private static func wrong(_ text: String, _ failures: Int) -> String? {
    let left = attempts - failures
    return failures == 0 ? nil : "\(text); \(left) \(left == 1 ? "try is" : "tries are") left."
  }

  /// The effect of the passphrase: the scope and the time.
  private var extent: String {
    guard request.isOfKeyhole else {
      return
        "The passphrase goes to this program, which opens the vault by itself: until the program ends, also when Keyhole "
        + "is locked."
    }
    // A command without a mount asks for itself.
    return request.process == CurrentProcess.parent
      ? "The passphrase opens the vault for this command only."
      : "The passphrase opens the vault for all your programs, until it is locked again."
  }

  private func askPassword() -> Answer {
    attempt { () throws(Pinentry.Failure) in
      guard request.password != .new else {
        let chosen = try pinentry("Choose a password for this item.").newSecret("Password:")
        return chosen.isEmpty ? .refused : .approved(ItemPassword(chosen))
      }
      let error = Self.wrong("That was wrong", request.failures)
      let secret = try pinentry("").secret("Password:", error: error)
      return secret.isEmpty ? .refused : .approved(ItemPassword(secret))
    }
  }

  private func attempt(_ body: () throws(Pinentry.Failure) -> Answer) -> Answer {
    while true {
      let departures = ForegroundWatch.departures
      do throws(Pinentry.Failure) {
        return try body()
      } catch {
        switch error {
        case .cancelled, .notConfirmed: return .refused
        case .late: return .timedOut
        case .missing where isInBackground:
          return .impossible("the program is in the background of its terminal, and there is no display")
        case .missing: return .impossible("there is neither a display nor a terminal with a pinentry")
        case .broken:
          // Taken off the terminal: the question comes again when the program is in the foreground again.
          guard ForegroundWatch.waitForReturn(since: departures) else {
            if case .terminal? = places.typing {
              return .impossible(
                "the pinentry has failed: its dialog takes a terminal of 16 lines and 80 columns whose TERM is known"
              )
            }
            return .impossible("the pinentry has failed")
          }
        }
      }
    }
  }

  /// A dialog in which the person types, or uses the reader.
  func pinentry(_ more: String) throws(Pinentry.Failure) -> Pinentry {
    guard let place = places.typing else { throw .missing }
    return try pinentry(more, in: place)
  }

  private func pinentry(_ more: String, in place: PromptPlace) throws(Pinentry.Failure) -> Pinentry {
    try Pinentry.begin(
      place, type: TerminalType.of(request.process), title: "Keyhole", text: text(more),
      seconds: request.timeout)
  }

  /// The program comes first, then what it wants. The command line is what the program shows.
  private func text(_ more: String) -> String {
    var lines = ["Program: \(request.program)"]
    lines += request.script.map { ["Script: \($0)"] } ?? []
    // `keyhole` asks, but another program gets it.
    let longest = request.started == nil ? 300 : Caller.Identity.StartedCommand.longestShown
    lines += request.started.map { ["It is for: \($0.prefix(2 * longest))"] } ?? []
    lines += ["Command: \(request.command.prefix(longest))", "Started by: \(request.parents)", purpose]
    lines += request.items.map { "  \($0)" }
    if request.others > 0 { lines.append("  and \(request.others) more") }
    lines += request.changes.map { "  \($0.prefix(300))" }
    // A window shows a name in Hebrew or Arabic from right to left, and would turn what stands beside it.
    lines = lines.map(\.inReadingOrder) + warnings
    if request.isApproval, request.password != .vault { lines.append(approval) }
    if let chosen = self.more.chosen {
      lines.append("Your choice is \(chosen)")
    } else if request.reuse > 0, !request.isApproval {
      lines.append("Your answer holds for this process and what is named here for \(request.reuse) s.")
    }
    return (lines + [more]).joined(separator: "\n")
  }

  /// The extent of the approval that `keyhole approve` asks for: a program may have typed the command.
  private var approval: String {
    let program = (request.rule?.program.string ?? request.program).inReadingOrder
    return switch request.approvedScope {
    case .items where request.approvesNext, .process where request.approvesNext:
      "You approve it ONCE. The program did not wait: if it has ended, the same command, started in the same way, may do it "
        + "once within \(AccessController.nextSeconds) s."
    case .items, .process: "You approve it ONCE."
    case .session:
      "You approve it FOR THE SESSION: each \(program) there may, until it ends or the keychain is locked."
    case .always: "You approve it FOR ALWAYS: a rule lets every \(program) open what is named here."
    }
  }

  /// Whose secrets these are: `anna, kept by Keyhole`.
  private var owner: String { User.name.map { "\($0), kept by Keyhole" } ?? "Keyhole" }

  /// Whether the change is one of a setting of Keyhole's own.
  private var isOfConfiguration: Bool {
    !request.items.isEmpty && request.items.allSatisfy { ConfigurationKey(path: $0) != nil }
  }

  private var purpose: String {
    if request.password == .vault, !request.isOfKeyhole {
      return "It asks for the passphrase of Keyhole's vault \(request.vault.inReadingOrder), to open:"
    }
    if request.password == .vault {
      return "It wants a secret of \(owner), whose vault \(request.vault) is locked:"
    }
    guard request.operation == .change else {
      return "It wants to \(request.operation.phrase) a secret of \(owner):"
    }
    if request.password == .new { return "It wants to give an item of \(owner) a password of its own:" }
    if isOfConfiguration { return "It wants to change a setting of Keyhole, which then protects less:" }
    return request.removesProtection
      ? "It wants to TAKE THE PROTECTION OFF a secret of \(owner):"
      : "It wants to change the protection of a secret of \(owner):"
  }

  /// A rule for `keyhole` itself lets in every program that can start it.
  private var warnings: [String] {
    guard request.changes.contains(where: RuleWarning.allowsKeyhole) else { return [] }
    return [RuleWarning.text]
  }
}

extension AccessOperation {
  /// For sentences: "it wants to read a secret".
  var phrase: String {
    switch self {
    case .read: "read"
    case .write: "replace"
    case .readWrite: "read and replace"
    case .change, .record: "change the protection of"
    }
  }
}
