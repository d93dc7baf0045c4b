import Model
import Platform
package import SecretMemory
import Store

/// A question of another program's, shown as such: for askpass, whose programs choose the text.
package enum ProgramQuestion {
  private static let title = "Keyhole: a program asks"
  private static let seconds = 120

  /// The answer that a person types.
  ///
  /// - Throws: `Failure` where there is nowhere to ask, or the person cancels.
  package static func answer(_ text: String) throws -> SecretBytes {
    let terminal = PromptPlaces.terminal(of: CurrentProcess.number, Caller.current.identity().terminal)
    guard let place = PromptPlaces(terminal: terminal).typing else {
      throw Failure(
        "askpass", "no item answers this question, and there is no terminal and no display to ask at")
    }
    return try attempt { () throws(Pinentry.Failure) in
      try pinentry(place, text, "The answer goes to that program.").secret("Answer:")
    }
  }

  /// Whether a person says yes, where no program can say it: a window of the user's session, or its terminal.
  ///
  /// - Throws: `Failure` where there is no such place.
  package static func confirm(_ text: String) throws -> Bool {
    let places = PromptPlaces(
      terminal: PromptPlaces.terminal(of: CurrentProcess.number, Caller.current.identity().terminal))
    guard let place = places.consent else {
      throw Failure("askpass", "no person can be asked: \(places.reason)")
    }
    return try attempt { () throws(Pinentry.Failure) in
      try pinentry(place, text, "Only allow it if you have just started that yourself.").confirm(
        default: .refuse)
    }
  }

  /// The text is the program's, and no part of it may look like Keyhole's.
  private static func pinentry(
    _ place: PromptPlace, _ text: String, _ note: String
  ) throws(Pinentry.Failure) -> Pinentry {
    let parents = Caller.current.identity().parents.prefix(4).joined(separator: " ← ")
    let lines = [
      "Started by: \(parents)", "It asks:", "  \(text.escapedForTerminal.abbreviated.inReadingOrder)", note,
    ]
    return try Pinentry.begin(
      place, type: environment("TERM"), title: title, text: lines.joined(separator: "\n"), seconds: seconds)
  }

  private static func attempt<Value: ~Copyable>(
    _ body: () throws(Pinentry.Failure) -> Value
  ) throws -> Value {
    do throws(Pinentry.Failure) { return try body() } catch {
      switch error {
      case .missing: throw Failure("pinentry", "it is not installed, and asks for Keyhole")
      case .cancelled, .notConfirmed: throw Failure("askpass", "it was cancelled", .refused)
      case .late: throw Failure("askpass", "the question was not answered in time", .refused)
      case .broken: throw Failure("pinentry", "it has ended without an answer")
      }
    }
  }
}
