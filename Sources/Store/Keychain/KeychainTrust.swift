public import Model

/// Whether a keychain holds what was last stored in it, as far as that is known.
public enum KeychainTrust: Hashable, Sendable {
  case trusted
  /// It was not used on this device before: an older state of it could not be recognised.
  case firstUse(lastChange: Timestamp)
  /// It was put back, cut or edited, and can only be read: what happened, and what to do.
  case distrusted(Problem)
}
