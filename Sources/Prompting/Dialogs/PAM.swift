import CSystem
import Platform
import SecretMemory

/// PAM for this process's user.
enum PAM {
  static let passcode = "keyhole"
  static let biometry = "keyhole-biometry"

  /// Without a file of its own, a service would get what `other` says.
  static func hasService(_ name: String) -> Bool {
    var folders = ["/etc/pam.d", "/usr/local/etc/pam.d", "/usr/lib/pam.d"]
    #if DEBUG
      // Tests have services of their own; a release has no such switch.
      folders += environment("PAM_WRAPPER_SERVICE_DIR").map { [$0] } ?? []
    #endif
    return folders.contains { Files.allows(.read, "\($0)/\(name)") }
  }

  /// `answer` gets what PAM wants to know; nil gives up.
  static func authenticate(_ service: String, _ answer: (String) -> SecretBytes?) -> Bool {
    guard let name = User.name else { return false }
    return withoutActuallyEscaping(answer) { answer in
      let box = Box(answer)
      return withExtendedLifetime(box) {
        unsafe linux_pam_authenticate(
          service, name,
          { context, style, message, buffer, size in
            guard let context = unsafe context, let buffer = unsafe buffer else { return 1 }
            // SAFETY: the box outlives the call that was given it.
            let box = unsafe Unmanaged<Box>.fromOpaque(context).takeUnretainedValue()
            let text = unsafe message.map { unsafe String(cString: $0) } ?? ""
            return unsafe box.converse(style, text, UnsafeMutableRawBufferPointer(start: buffer, count: size))
          }, Unmanaged.passUnretained(box).toOpaque()) == 0
      }
    }
  }

  private final class Box {
    private let answer: (String) -> SecretBytes?

    init(_ answer: @escaping (String) -> SecretBytes?) {
      self.answer = answer
    }

    /// 1 and 2: PAM_PROMPT_ECHO_OFF and _ON; what is only told has no answer.
    func converse(_ style: Int32, _ text: String, _ buffer: UnsafeMutableRawBufferPointer) -> Int32 {
      guard style == 1 || style == 2 else { return 0 }
      guard let secret = answer(text), secret.count < buffer.count else { return 1 }
      unsafe secret.withUnsafeBytes { unsafe buffer.copyMemory(from: $0) }
      return 0
    }
  }
}
