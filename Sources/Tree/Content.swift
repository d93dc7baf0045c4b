import Glibc
import Model
import SecretMemory

/// The bytes of a file while somebody writes or reads them: a secret's in locked memory, others' not.
enum Content: ~Copyable {
  case plain([UInt8])
  case secret(SecretBytes)

  static func empty(secret: Bool) throws(StoreError) -> Content {
    guard secret else { return .plain([]) }
    do { return .secret(try SecretBytes()) } catch { throw .outOfMemory }
  }

  var count: Int {
    switch self {
    case .plain(let bytes): bytes.count
    case .secret(let bytes): bytes.count
    }
  }

  borrowing func withBytes<Value: ~Copyable, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    switch self {
    case .plain(let bytes): try unsafe bytes.withRawBytes(body)
    case .secret(let bytes): try unsafe bytes.withUnsafeBytes(body)
    }
  }

  /// Puts `bytes` at `offset`; a gap reads as zero bytes.
  mutating func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(StoreError) {
    switch consume self {
    case .plain(var plain):
      unsafe plain.write(bytes, at: offset)
      self = .plain(plain)
    case .secret(var secret):
      let result = Result { () throws(SecretMemoryError) in try unsafe secret.write(bytes, at: offset) }
      self = .secret(secret)
      if case .failure = result { throw .outOfMemory }
    }
  }

  /// Cuts off the end, or adds zero bytes.
  mutating func resize(to count: Int) throws(StoreError) {
    switch consume self {
    case .plain(var plain):
      plain.resize(to: count)
      self = .plain(plain)
    case .secret(var secret):
      let result = Result { () throws(SecretMemoryError) in try secret.resize(to: count) }
      self = .secret(secret)
      if case .failure = result { throw .outOfMemory }
    }
  }

  mutating func append(_ bytes: UnsafeRawBufferPointer) throws(StoreError) {
    try unsafe write(bytes, at: count)
  }

  borrowing func copy() throws(StoreError) -> Content {
    var copy = try Content.empty(secret: isSecret)
    try unsafe withBytes { (bytes) throws(StoreError) in try unsafe copy.append(bytes) }
    return copy
  }

  /// Whether `other` begins with these bytes and has more.
  borrowing func isBeginning(of other: borrowing Content) -> Bool {
    let count = count
    guard count < other.count else { return false }
    return unsafe withBytes { bytes in
      // SAFETY: both have at least `count` bytes; where there are none, nothing is read.
      unsafe other.withBytes { more in
        guard let bytes = bytes.baseAddress, let more = more.baseAddress else { return true }
        return unsafe memcmp(bytes, more, count) == 0
      }
    }
  }

  var isSecret: Bool {
    switch self {
    case .plain: false
    case .secret: true
    }
  }
}

extension [UInt8] {
  func withRawBytes<Value: ~Copyable, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    try unsafe span.bytes.withUnsafeBytes(body)
  }

  fileprivate mutating func resize(to newCount: Int) {
    if newCount < count {
      removeLast(count - newCount)
    } else {
      append(contentsOf: repeatElement(0, count: newCount - count))
    }
  }

  fileprivate mutating func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
    if offset == count { return unsafe append(contentsOf: bytes) }
    resize(to: Swift.max(count, offset + bytes.count))
    unsafe replaceSubrange(offset..<offset + bytes.count, with: bytes)
  }
}
