import Glibc

/// The conditions that this process was started with and changes for itself: a program that it starts in the user's place has
/// them again.
package struct StartConditions: Sendable {
  /// The mask of new files: umask(2).
  package let fileMask: UInt32
  /// RLIMIT_CORE.
  package let coreFile: ResourceLimit.Values
  /// RLIMIT_MEMLOCK, which `SecretMemory` raises.
  package let lockedMemory: ResourceLimit.Values
  /// The signals that the thread blocks: bit N - 1 for the signal N.
  package let blockedSignals: UInt64

  /// Those at the first use, which has to be the first statement of `main`, before `hardenProcess`.
  package static let ofProcess = take()

  /// Those of now. Another thread must not make files at the same time: the mask can only be read by setting it.
  private static func take() -> StartConditions {
    let mask = umask(0)
    umask(mask)
    return StartConditions(
      fileMask: mask, coreFile: ResourceLimit.coreFile.values,
      lockedMemory: ResourceLimit.lockedMemory.values,
      blockedSignals: Signals.blocked)
  }
}
