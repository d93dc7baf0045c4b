import Glibc
import Model

/// The unmodified Foundation program, as built beside these tests, in the folders of one sandbox.
struct FoundationProgram {
  let sandbox: SuiteSandbox

  /// The output, without the last line feed; nil: it failed.
  func callAsFunction(_ arguments: String..., input: [UInt8] = []) -> String? {
    let (source, sink) = (sandbox.root + "/input", sandbox.root + "/output")
    sandbox.write(input, to: source)
    let script = "exec \"$0\" \"$@\" <\"$INPUT\" >\"$OUTPUT\""
    let code = SuiteSandbox.run(
      ["/bin/sh", "-c", script, Self.path] + arguments,
      environment: [
        "HOME": sandbox.root, "XDG_CONFIG_HOME": sandbox.folder, "INPUT": source, "OUTPUT": sink,
        "PATH": "/usr/bin:/bin", "SWIFT_BACKTRACE": "enable=no", "LD_LIBRARY_PATH": Self.libraries,
      ])
    guard code == 0 else { return nil }
    return String(sandbox.text(sink).dropLast())
  }

  /// The output, byte for byte.
  func bytes(_ arguments: String...) -> [UInt8] {
    let sink = sandbox.root + "/output"
    let code = SuiteSandbox.run(
      ["/bin/sh", "-c", "exec \"$0\" \"$@\" >\"$OUTPUT\"", Self.path] + arguments,
      environment: ["HOME": sandbox.root, "OUTPUT": sink, "LD_LIBRARY_PATH": Self.libraries])
    return code == 0 ? sandbox.bytes(sink) : []
  }

  private static var libraries: String {
    unsafe getenv("LD_LIBRARY_PATH").map { unsafe String(cString: $0) } ?? ""
  }

  /// In the folder of the program that runs the tests.
  static let path: String = {
    var buffer = [CChar](repeating: 0, count: 4096)
    let count = unsafe readlink("/proc/self/exe", &buffer, buffer.count)
    let own = String(decoding: buffer.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    for candidate in [own] + CommandLine.arguments where candidate.contains("/") {
      let folder = String(candidate[..<(candidate.lastIndex(of: "/") ?? candidate.startIndex)])
      if unsafe access(folder + "/FoundationProgram", X_OK) == 0 { return folder + "/FoundationProgram" }
    }
    return "FoundationProgram"
  }()
}

/// A value as the Foundation program describes it.
func describe(_ value: SettingValue) -> String {
  switch value {
  case .string(let text):
    "string " + text.string.unicodeScalars.map { String($0.value, radix: 16) }.joined(separator: " ")
  case .integer(let number): "integer \(number)"
  case .real(let number): "real \(number.description)"
  case .bool(let flag): "bool \(flag)"
  case .date(let date): "date \(date.seconds)"
  case .data(let bytes): "data " + bytes.map { String($0, radix: 16) }.joined(separator: " ")
  case .uid: "uid"
  case .array(let items): "array [" + items.map(describe).joined(separator: ", ") + "]"
  case .dictionary(let entries):
    "dict {"
      + entries.sorted { $0.key < $1.key }.map { describe(.string($0.key)) + ": " + describe($0.value) }
      .joined(separator: ", ") + "}"
  }
}
