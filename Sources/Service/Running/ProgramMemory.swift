import Model
import ProgramRunning
import SecretMemory

/// The locked memory that the values of a program take until it runs.
struct ProgramMemory {
  private static let page = 4096
  /// The search for a value's forms takes about so many bytes for each of its bytes, while it grows.
  private static let ofMask = 1800

  private let sizes: [Int]
  private let isMasking: Bool
  private let used: UInt64

  /// `sizes`: of the values, in bytes; `used`: what the process has locked without them.
  init(_ sizes: [Int], masking isMasking: Bool, besides used: UInt64) {
    (self.sizes, self.isMasking, self.used) = (sizes, isMasking, used)
  }

  /// In bytes, and rather more than less: a value is decrypted, read from its file and copied, and then kept once for the program and, as a
  /// variable, once more while that starts.
  var needed: UInt64 {
    let pages = sizes.map { ($0 / Self.page + 2) * Self.page }
    let masked = sizes.filter { $0 <= SecretPatterns.longest }.reduce(0, &+)
    let values = pages.reduce(0, &+) * 2 + (pages.max() ?? 0) * 3
    return used + UInt64(clamping: values + (isMasking ? masked * Self.ofMask : 0) + 256 * 1024)
  }

  /// The limit is reached.
  var lack: Failure { lack("the values need about") }

  /// The limit is reached before the size of any value is known.
  var lackForKeychain: Failure { lack("the keychain and small values need about") }

  private func lack(_ subject: String) -> Failure {
    let (needed, limit) = (needed / 1024, LockedMemoryLimit.bytes / 1024)
    return Failure(
      nil,
      "\(subject) \(needed) KiB of locked memory, and the limit is \(limit) KiB; nothing was started. `ulimit -l \(needed)` raises it "
        + "where the hard limit allows it, else memlock in /etc/security/limits.conf or LimitMEMLOCK= of a unit"
    )
  }
}
