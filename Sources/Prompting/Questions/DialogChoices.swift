import Model
import PromptHelper
import Store

/// The answers that a question offers besides "once": for the process, for its session, by a rule.
///
/// An answer that holds longer is typed as a word: a pinentry has three buttons at most, and Return must not be a yes.
struct DialogChoices {
  private let request: AuthenticationRequest
  /// Whether choosing is the consent that is demanded: nothing else is asked for.
  let isConsentHere: Bool

  /// nil: the question offers nothing but "once".
  init?(_ request: AuthenticationRequest, _ places: PromptPlaces) {
    var request = request
    // Without a login session, a program could wait in a session of its own for as long as it likes.
    if places.consent == nil { request.session = nil }
    guard !request.isApproval, request.offersProcess || request.session != nil || request.rule != nil else {
      return nil
    }
    self.request = request
    isConsentHere = request.demand == .consent && places.consent != nil
  }

  /// The words that a person may type, with their effects.
  private var longer: [(word: String, answer: Answer, effect: String)] {
    var choices: [(word: String, answer: Answer, effect: String)] = []
    if request.offersProcess {
      choices.append(
        (
          "all", .approved(nil, scope: .process),
          "this process may \(request.operation.phrase) every other item with the same conditions for "
            + "\(request.reuse) s. It has asked before."
        ))
    }
    if let session = request.session {
      choices.append(
        (
          "session", .approved(nil, scope: .session),
          "each \(program) that is started in the session of \(session.inReadingOrder) may "
            + "\(request.operation.phrase) what is named here until that ends or the keychain is locked."
        ))
    }
    guard request.rule != nil else { return choices }
    choices.append(
      (
        "always", .approved(nil, scope: .always),
        "a rule lets every \(program) open what is named here.\(warning)"
      ))
    choices.append(("never", .never, "a rule keeps \(program) out of what is named here."))
    return choices
  }

  private var program: String { (request.rule?.program.string ?? request.program).inReadingOrder }

  private var warning: String {
    RuleWarning.allowsKeyhole("allow \(request.rule?.program.string ?? "")") ? " " + RuleWarning.text : ""
  }

  private var explanation: String {
    longer.map { "\($0.word): \($0.effect)" }.joined(separator: "\n")
  }

  /// The words for the dialog that leads here.
  var words: String { longer.map(\.word).joined(separator: ", ") }

  /// Asks where choosing is the consent. - Throws: `late`, `broken`, `missing`.
  func ask(in dialog: Dialog) throws(Pinentry.Failure) -> Answer {
    switch try chooseButton(in: dialog) {
    case nil, .first: return try askInWords(in: dialog)
    case .second: return .approved(nil)
    case .refused: return .refused
    }
  }

  /// Not by Return alone. nil: the dialog has no third button.
  private func chooseButton(in dialog: Dialog) throws(Pinentry.Failure) -> Pinentry.Choice? {
    let pinentry = try dialog.pinentry("")
    guard pinentry.hasThreeButtons else { return nil }
    return try pinentry.choose("More choices", "Allow once", "Refuse")
  }

  /// Has the person type one of the words; nothing typed refuses. - Throws: as `ask`.
  func askInWords(in dialog: Dialog) throws(Pinentry.Failure) -> Answer {
    let once = isConsentHere ? "yes" : "once"
    let word = try dialog.pinentry("\(once): now only.\n\(explanation)").word(of: [once] + longer.map(\.word))
    if word == once { return .approved(nil) }
    guard let choice = longer.first(where: { $0.word == word }) else { return .refused }
    dialog.show(chosen: "\(choice.word): \(choice.effect)")
    return choice.answer
  }
}
