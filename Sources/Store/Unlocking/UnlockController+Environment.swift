import Platform

extension UnlockController {
  /// Whether a command or a program with the wrappers may have its user asked for the passphrase: the variable
  /// `KEYHOLE_ASK_UNLOCK` is not `no`.
  public static var isWantedByEnvironment: Bool { environment("KEYHOLE_ASK_UNLOCK") != "no" }
}
