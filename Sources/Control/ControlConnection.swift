import CLinux
import Glibc
import Home
import SecretMemory

/// A connection to the process of a mount.
final class ControlConnection: Sendable {
  /// How the names of such sockets end.
  static let ending = ".control"
  /// In bytes; a password is among what comes.
  private static let longestAnswer = 64 * 1024

  private let descriptor: Int32

  /// nil: nobody listens there any more. Calls fail after `seconds`.
  init?(_ path: String, _ seconds: Int) {
    guard let descriptor = Self.connect(path, seconds) else { return nil }
    self.descriptor = descriptor
  }

  deinit {
    close(descriptor)
  }

  /// A connection to the process that listens at `path`, if that is this user's.
  static func connect(_ path: String, _ seconds: Int) -> Int32? {
    let descriptor = unsafe linux_connect(path, Int32(clamping: seconds))
    guard descriptor >= 0 else { return nil }
    if linux_peer(descriptor) == getuid() { return descriptor }
    close(descriptor)
    return nil
  }

  /// Says with the first line what is wanted; false: it could not be sent.
  static func begin(_ connection: Int32, _ line: String) -> Bool {
    let bytes = Array("\(line)\n".utf8)
    // SAFETY: the buffer says how long it is. MSG_NOSIGNAL: the other side may be gone.
    return unsafe bytes.withUnsafeBytes {
      unsafe Glibc.send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) == $0.count
    }
  }

  func shut() {
    shutdown(descriptor, Int32(SHUT_RDWR))
  }

  /// Sends a line, and returns what comes until the other side closes; nil: it could not be sent.
  func send(_ line: String) -> SecretBytes? {
    Self.begin(descriptor, line) ? try? receive() : nil
  }

  /// Whether the process at the other end answers within so many seconds; nil: nobody listens there any more.
  static func answers(_ path: String, within seconds: Int) -> Bool? {
    guard let socket = ControlConnection(path, seconds) else { return nil }
    // No item has that name, so the answer is empty.
    guard begin(socket.descriptor, "\(MountNames.word) -") else { return false }
    var byte: UInt8 = 0
    while true {
      // SAFETY: it is one byte long.
      let count = unsafe recv(socket.descriptor, &byte, 1, 0)
      if count < 0, errno == EINTR { continue }
      return count >= 0
    }
  }

  private func receive() throws(SecretMemoryError) -> SecretBytes {
    var answer = try SecretBytes()
    var chunk = try SecretBytes(pinnable: 4096)
    while answer.count < Self.longestAnswer {
      // SAFETY: the buffer says how long it is.
      let count = unsafe chunk.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { break }
      try unsafe chunk.withUnsafeBytes { (bytes) throws(SecretMemoryError) in
        try unsafe answer.append(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
      }
    }
    return answer
  }

  /// The sockets in a folder, those of the newest processes first.
  static func paths(in folder: String) -> [String] {
    let processes = names(in: folder).compactMap { name in
      name.hasSuffix(ending) ? Int32(name.dropLast(ending.count)) : nil
    }
    return processes.sorted(by: >).map { "\(folder)/\($0)\(ending)" }
  }
}
