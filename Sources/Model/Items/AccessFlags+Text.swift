extension AccessFlags {
  /// Flags as `user.keyhole.access` holds them, joined by `|`, in the order given.
  ///
  /// nil for an empty text, an unknown word, a flag given twice, and for `or` and `and` where there are not
  /// two constraints to join, or where both are there. As with Apple's SecAccessControlCreateFlags,
  /// `applicationPassword` is no constraint but one more lock, and constraints that neither word joins all
  /// have to be met.
  public init?(text: some StringProtocol) {
    let words = text.split(separator: "|", omittingEmptySubsequences: false)
    let flags = words.compactMap { Flag(rawValue: String($0)) }
    guard flags.count == words.count else { return nil }
    self.init(flags)
    guard makesSense else { return nil }
  }

  /// The flags as `user.keyhole.access` shows them: their names, joined by `|`, in the order given.
  public var text: String {
    flags.map(\.rawValue).joined(separator: "|")
  }

  private var makesSense: Bool {
    let joints = flags.filter { $0 == .or || $0 == .and }
    let constraints = flags.count - joints.count - (flags.contains(.applicationPassword) ? 1 : 0)
    guard Set(flags).count == flags.count, joints.count < 2 else { return false }
    return joints.isEmpty || constraints >= 2
  }
}
