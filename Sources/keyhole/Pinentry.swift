import Glibc
import Model
import SecretMemory

/// A dialog of GnuPG's pinentry, spoken to in the Assuan protocol.
final class Pinentry {
  enum Failure: Error {
    case missing
    case cancelled
    case late
    case broken
  }

  private static let again = "Once more:"

  private let program: Child
  /// The dialog had the last secret typed twice.
  private var hasRepeated = false

  /// A graphical one where there is a display, else one on the asker's terminal.
  ///
  /// - Throws: `missing` where there is neither, or no program.
  init(terminal: Terminal?, title: String, text: String, seconds: Int) throws(Failure) {
    guard let program = Self.start(terminal) else { throw .missing }
    self.program = program
    do throws(Failure) {
      guard try readLine().hasPrefix("OK") else { throw .broken }
      if let terminal {
        _ = try? command("OPTION ttyname=\(terminal.device)")
        _ = try? command("OPTION ttytype=\(terminal.type ?? Self.variable("TERM") ?? "xterm")")
        _ = try? command("OPTION lc-ctype=\(Self.variable("LC_ALL") ?? "C.UTF-8")")
      }
      _ = try? command("SETTIMEOUT \(seconds)")
      try command("SETTITLE " + Self.escaped(title))
      try command("SETDESC " + Self.escaped(text))
    } catch {
      program.end()
      throw error
    }
  }

  deinit {
    program.end()
  }

  /// Whether a person says yes. - Throws: `late`, `broken`.
  func confirm() throws(Failure) -> Bool {
    do throws(Failure) {
      try command("SETOK Allow")
      try command("SETCANCEL Refuse")
      try command("CONFIRM")
      return true
    } catch .cancelled {
      return false
    }
  }

  /// What a person types. - Throws: `cancelled`, `late`, `broken`.
  func secret(_ prompt: String, error: String? = nil) throws(Failure) -> SecretBytes {
    if let error { try command("SETERROR " + Self.escaped(error)) }
    try command("SETPROMPT " + Self.escaped(prompt))
    send("GETPIN")
    guard var secret = try? SecretBytes() else { throw .broken }
    while true {
      guard let line = try? SecretInput.readLine(descriptor: program.output) else { throw .broken }
      if try unsafe line.withUnsafeBytes({ (bytes) throws(Failure) in try unsafe take(bytes, into: &secret) })
      {
        return secret
      }
    }
  }

  /// What a person types twice, so that they know what they have chosen. - Throws: as `secret`.
  func newSecret(_ prompt: String) throws(Failure) -> SecretBytes {
    var error: String?
    while true {
      _ = try? command("SETREPEAT " + Self.escaped(Self.again))
      hasRepeated = false
      let first = try secret(prompt, error: error)
      // Not every pinentry can ask twice by itself; which can says so.
      if hasRepeated { return first }
      let second = try secret(Self.again)
      if first == second { return second }
      error = "The two were not the same."
    }
  }
}

extension Pinentry {
  /// True: the answer is complete.
  private func take(_ line: UnsafeRawBufferPointer, into secret: inout SecretBytes) throws(Failure) -> Bool {
    if unsafe line.starts(with: "S PIN_REPEATED".utf8) { hasRepeated = true }
    guard unsafe line.starts(with: "D ".utf8) else {
      return try unsafe Self.isOK(String(decoding: line.prefix(64), as: UTF8.self))
    }
    var rest = unsafe line.dropFirst(2)
    while let byte = unsafe rest.popFirst() {
      var plain = byte
      if byte == UInt8(ascii: "%"), unsafe rest.count >= 2 {
        let digits = unsafe String(decoding: rest.prefix(2), as: UTF8.self)
        plain = UInt8(digits, radix: 16) ?? byte
        unsafe rest = unsafe rest.dropFirst(2)
      }
      let isKept: Void? = try? unsafe withUnsafeBytes(of: &plain) { try unsafe secret.append($0) }
      guard isKept != nil else { throw .broken }
    }
    return false
  }

  private static func start(_ terminal: Terminal?) -> Child? {
    let hasDisplay = variable("WAYLAND_DISPLAY") != nil || variable("DISPLAY") != nil
    guard hasDisplay || terminal != nil else { return nil }
    let names = hasDisplay ? ["pinentry"] : ["pinentry-curses", "pinentry-tty", "pinentry"]
    return names.lazy.compactMap { try? Child([$0], input: .pipedInOurGroup) }.first
  }

  private static func variable(_ name: String) -> String? {
    unsafe getenv(name).map { unsafe String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
  }

  private func send(_ line: String) {
    // SAFETY: the buffer says how long it is.
    _ = unsafe Array((line + "\n").utf8).withUnsafeBytes {
      unsafe write(program.input, $0.baseAddress, $0.count)
    }
  }

  private func command(_ line: String) throws(Failure) {
    send(line)
    while try !Self.isOK(readLine()) {}
  }

  private func readLine() throws(Failure) -> String {
    guard let line = try? SecretInput.readLine(descriptor: program.output), !line.isEmpty else {
      throw .broken
    }
    return unsafe line.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
  }

  /// False: another line follows. - Throws: what an error's number means (libgpg-error; the upper bits say whose).
  private static func isOK(_ line: String) throws(Failure) -> Bool {
    if line.hasPrefix("OK") { return true }
    guard line.hasPrefix("ERR ") else {
      if line.isEmpty { throw .broken }
      return false
    }
    let number = line.dropFirst(4).split(separator: " ").first.flatMap { Int($0) } ?? 0
    switch number & 0xFFFF {
    case 99, 114: throw .cancelled
    case 62: throw .late
    default: throw .broken
    }
  }

  private static func escaped(_ text: String) -> String {
    text.replacing("%", with: "%25").replacing("\n", with: "%0A").replacing("\r", with: "%0D")
  }
}

/// The terminal of the program that asks.
struct Terminal {
  let device: String
  /// What it understands, as its program's variable TERM says; nil: that can't be told.
  let type: String?

  init(_ device: String, of process: Int32) {
    self.device = device
    type = Self.type(of: process)
  }

  private static func type(of process: Int32) -> String? {
    // SAFETY: a variadic call without its variable part.
    let file = unsafe open("/proc/\(process)/environ", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    guard let variables = try? SecretInput.read(descriptor: file, limit: 1 << 20) else { return nil }
    let type = unsafe variables.withUnsafeBytes { bytes in
      unsafe bytes.split(separator: 0).first { unsafe $0.starts(with: "TERM=".utf8) }
        .map { unsafe String(decoding: $0.dropFirst(5), as: UTF8.self) }
    }
    // A program may say anything here.
    guard let type, !type.isEmpty, type.utf8.count < 64 else { return nil }
    return type.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-+._".contains($0)) } ? type : nil
  }
}
