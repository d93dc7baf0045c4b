import Platform
import SecretMemory

/// The abilities of a terminal, by the variable TERM of a program on it.
enum TerminalType {
  /// That of the process, or of its parent where it closes itself to others; nil: it is not known.
  static func of(_ process: Int32) -> String? {
    variable(of: process) ?? ProcessFiles(process).status?.parent.flatMap(variable)
  }

  private static func variable(of process: Int32) -> String? {
    guard let file = try? Descriptor("/proc/\(process)/environ", .reading),
      let variables = try? SecretInput.read(descriptor: file.number, limit: 1 << 20)
    else { return nil }
    return type(in: variables.span)
  }

  /// The value of TERM in the text of /proc/PID/environ; nil: none, or no name of a terminal. A program may put anything there.
  static func type(in variables: Span<UInt8>) -> String? {
    guard let type = value("TERM=", in: variables), !type.isEmpty, type.utf8.count < 64 else { return nil }
    return type.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-+._".contains($0)) } ? type : nil
  }

  /// The first of the variables that begins with a name and an equals sign, without them. The others may be secrets: they are
  /// not copied.
  private static func value(_ name: String, in variables: Span<UInt8>) -> String? {
    var start = 0
    while start < variables.count {
      let end = variables.firstOffset(of: 0, from: start) ?? variables.count
      let variable = variables.extracting(start..<end)
      if variable.starts(with: name) { return variable.extracting(name.utf8.count...).text }
      start = end + 1
    }
    return nil
  }
}
