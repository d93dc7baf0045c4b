import CLinux
import Glibc
import Model
import SecretMemory

/// One message between a program and the process of a mount.
struct Message: ~Copyable {
  enum Kind: UInt8 {
    // What a program says.
    case watch = 1
    case fetchItems, fetchSecret, add, update, rewrite, remove, fetchProblems, fetchRoom
    /// The items, and their secret, as they are to be.
    case changed
    // What the mount's process says.
    /// Somebody is being asked: it goes on.
    case asking = 100
    case failed, secret, done, state, someItems, allItems, news
    /// The items, and their secret, as they are stored.
    case stored
    case problems, room
  }

  let kind: Kind
  /// What is no secret.
  let body: [UInt8]
  var secret: SecretBytes?
}

/// A connection on which both sides send frames.
final class MessageChannel: Sendable {
  /// In bytes. Items travel in frames of no more than a part of this.
  private static let longestBody = 64 << 20
  private static let longestSecret = 2 << 20
  private static let noSecret = UInt32.max

  private let descriptor: Int32

  /// Takes over a connection, whose calls have a time limit.
  init(_ descriptor: Int32) {
    self.descriptor = descriptor
  }

  deinit {
    close(descriptor)
  }

  /// The process at the other end, as it was when it connected.
  var peer: Int32 { linux_peer_process(descriptor) }

  func shut() {
    shutdown(descriptor, Int32(SHUT_RDWR))
  }
}

extension MessageChannel {
  /// False: the other side is gone, or takes nothing for too long.
  @discardableResult
  func send(_ kind: Message.Kind, _ body: [UInt8] = []) -> Bool {
    send(head(kind, body, secretCount: Self.noSecret))
  }

  @discardableResult
  func send(_ kind: Message.Kind, _ body: [UInt8] = [], secret: borrowing SecretBytes) -> Bool {
    guard send(head(kind, body, secretCount: UInt32(secret.count))) else { return false }
    return unsafe secret.withUnsafeBytes { unsafe send($0) }
  }

  private func head(_ kind: Message.Kind, _ body: [UInt8], secretCount: UInt32) -> [UInt8] {
    var writer = WireWriter()
    writer.put(kind.rawValue)
    writer.put(secretCount)
    writer.put(body)
    return writer.bytes
  }

  private func send(_ bytes: [UInt8]) -> Bool { unsafe bytes.withUnsafeBytes { unsafe send($0) } }

  private func send(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var rest = unsafe bytes[...]
    while unsafe !rest.isEmpty {
      let piece = unsafe UnsafeRawBufferPointer(rebasing: rest)
      // SAFETY: the slice says how long it is. MSG_NOSIGNAL: the other side may be gone.
      let count = unsafe Glibc.send(descriptor, piece.baseAddress, piece.count, Int32(MSG_NOSIGNAL))
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return false }
      unsafe rest = unsafe rest.dropFirst(count)
    }
    return true
  }
}

extension MessageChannel {
  /// The next frame. - Throws: `unreachable` where none comes in time, or nobody is there any more.
  func receive() throws(StoreError) -> Message {
    var head = WireReader(try receiveBytes(9))
    guard let kind = Message.Kind(rawValue: try head.integer()) else { throw WireReader.unreadable }
    let (secretCount, count) = (try head.integer(UInt32.self), try head.integer(UInt32.self))
    guard count <= Self.longestBody, secretCount == Self.noSecret || secretCount <= Self.longestSecret else {
      throw WireReader.unreadable
    }
    let body = try receiveBytes(Int(count))
    guard secretCount != Self.noSecret else { return Message(kind: kind, body: body, secret: nil) }
    return Message(kind: kind, body: body, secret: try receiveSecret(Int(secretCount)))
  }

  private func receiveBytes(_ count: Int) throws(StoreError) -> [UInt8] {
    var failure: StoreError?
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { bytes, filled in
      // SAFETY: the buffer has room for so many.
      let room = unsafe UnsafeMutableRawBufferPointer(UnsafeMutableBufferPointer(rebasing: bytes[..<count]))
      do throws(StoreError) { try unsafe fill(room) } catch { failure = error }
      filled = failure == nil ? count : 0
    }
    if let failure { throw failure }
    return bytes
  }

  private func receiveSecret(_ count: Int) throws(StoreError) -> SecretBytes {
    var secret: SecretBytes
    do { secret = try SecretBytes(count: count) } catch { throw .outOfMemory }
    try unsafe secret.withUnsafeMutableBytes { (bytes) throws(StoreError) in try unsafe fill(bytes) }
    return secret
  }

  static let noAnswer = StoreError.unreachable(reason: "the mount's process does not answer")

  private func fill(_ bytes: UnsafeMutableRawBufferPointer) throws(StoreError) {
    var done = 0
    while done < bytes.count {
      // SAFETY: what is left of the buffer.
      let piece = unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[done...])
      let count = unsafe recv(descriptor, piece.baseAddress, piece.count, 0)
      if count < 0, errno == EINTR { continue }
      guard count != 0 else { throw .unreachable(reason: "the mount's process has ended") }
      guard count > 0 else { throw Self.noAnswer }
      done += count
    }
  }

  /// What ends a `wait`.
  enum Event {
    /// A frame, or the end of the other side.
    case input
    case bell
    case late
  }

  /// Returns when something comes, the bell rings, or after so many milliseconds; -1: never.
  func wait(or bell: WakePipe? = nil, milliseconds: Int32 = -1) -> Event {
    var watched = [
      pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: bell?.heard ?? -1, events: Int16(POLLIN), revents: 0),
    ]
    while true {
      // SAFETY: the array says how long it is.
      let count = unsafe poll(&watched, 2, milliseconds)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return .late }
      return watched[0].revents != 0 ? .input : .bell
    }
  }
}
