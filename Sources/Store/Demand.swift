public import Model

/// What a person has to do before a secret is given.
public indirect enum Demand: Hashable, Sendable {
  /// To say yes.
  case consent
  case biometry
  /// A biometry of the set that was enrolled when the flag was set.
  case biometryOfCurrentSet
  case passcode
  /// One of them.
  case any([Demand])
  /// All of them.
  case all([Demand])
}

extension AccessFlags {
  /// What the flags ask of a person, but for the application password; nil: nothing.
  ///
  /// Constraints that neither `or` nor `and` joins all have to be met.
  public var demand: Demand? {
    let demands = flags.compactMap(\.demand)
    guard demands.count > 1 else { return demands.first }
    return flags.contains(.or) ? .any(demands) : .all(demands)
  }

  public var needsPassword: Bool { flags.contains(.applicationPassword) }
}

extension AccessFlags.Flag {
  fileprivate var demand: Demand? {
    switch self {
    case .userPresence: .any([.biometry, .passcode])
    case .biometryAny: .biometry
    case .biometryCurrentSet: .biometryOfCurrentSet
    case .devicePasscode: .passcode
    case .applicationPassword, .or, .and: nil
    }
  }
}
