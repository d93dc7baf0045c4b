import Glibc
import SecretMemory
import Store

/// The fingers that are enrolled for the user at this moment, as fprintd tells.
enum EnrolledSet {
  /// In seconds; fprintd is started by the bus when it is asked.
  private static let patience = 5

  /// nil: nothing tells, or no finger is enrolled.
  static func digest() -> String? {
    guard let entry = unsafe getpwuid(getuid()), let name = unsafe entry.pointee.pw_name else { return nil }
    let words = ["fprintd-list", unsafe String(cString: name)]
    guard let program = try? Child(words, input: .piped) else { return nil }
    defer { program.end() }
    program.closeInput()
    guard program.waitForEnd(seconds: patience), program.wait() == 0 else { return nil }
    guard let output = try? SecretInput.read(descriptor: program.output, limit: 64 * 1024) else { return nil }
    let list = unsafe output.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    return EnrolledFingers.digest(ofList: list)
  }
}
