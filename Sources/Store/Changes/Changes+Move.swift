import Model

extension [Change] {
  /// The same changes with the disappearance of one name and the appearance of the other as one move.
  func merging(
    move: (from: ExactString, to: ExactString), in suite: ExactString
  ) -> [Change] {
    let from = Change.Subject.key(suite: suite, key: move.from)
    let to = Change.Subject.key(suite: suite, key: move.to)
    return filter { $0.subject != from && $0.subject != to }
      + [Change(.moved, to, previous: from, origin: .local)]
  }
}
