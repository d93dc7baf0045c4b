import Platform
import SecretMemory

/// The abilities of a terminal, by the variable TERM of a program on it.
enum TerminalType {
  /// nil: it is not known.
  static func of(_ process: Int32) -> String? {
    guard let file = try? Descriptor("/proc/\(process)/environ", .reading),
      let variables = try? SecretInput.read(descriptor: file.number, limit: 1 << 20)
    else { return nil }
    return unsafe variables.withUnsafeBytes { unsafe type(in: $0) }
  }

  /// The value of TERM in the text of /proc/PID/environ; nil: none, or no name of a terminal. A program may put anything there.
  static func type(in variables: UnsafeRawBufferPointer) -> String? {
    let type = unsafe variables.split(separator: 0).first { unsafe $0.starts(with: "TERM=".utf8) }
      .map { unsafe String(decoding: $0.dropFirst(5), as: UTF8.self) }
    guard let type, !type.isEmpty, type.utf8.count < 64 else { return nil }
    return type.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-+._".contains($0)) } ? type : nil
  }
}
