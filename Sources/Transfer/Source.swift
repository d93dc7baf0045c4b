import Glibc
public import SecretMemory

/// What is imported, as bytes that leave no copy: a file as it lies on the disk, or memory for secrets.
@safe public final class Source: Sendable {
  private let memory: SecretBytes?
  private let isMapping: Bool
  // SAFETY: it points into `memory` or a mapping, which is neither moved nor changed as long as self lives.
  private nonisolated(unsafe) let buffer: UnsafeRawBufferPointer

  public init(_ bytes: consuming SecretBytes) {
    // SAFETY: the block that is pointed to moves into `memory` and stays where it is.
    unsafe buffer = unsafe bytes.withUnsafeBytes { unsafe $0 }
    memory = .some(bytes)
    isMapping = false
  }

  /// Maps a file, which has its own copy of whatever is in it; nil where it can't be mapped.
  public init?(mapping descriptor: Int32) {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > 0
    else {
      return nil
    }
    let size = Int(status.st_size)
    let address = unsafe mmap(nil, size, PROT_READ, MAP_PRIVATE, descriptor, 0)
    guard let address = unsafe address, unsafe address != MAP_FAILED else { return nil }
    unsafe buffer = unsafe UnsafeRawBufferPointer(start: address, count: size)
    memory = nil
    isMapping = true
  }

  deinit {
    guard isMapping, let base = unsafe buffer.baseAddress else { return }
    unsafe munmap(UnsafeMutableRawPointer(mutating: base), buffer.count)
  }

  public var count: Int { unsafe buffer.count }

  var whole: Range<Int> { 0..<count }

  subscript(index: Int) -> UInt8 {
    precondition(index >= 0 && index < count)
    return unsafe buffer[index]
  }

  /// Lends a part; the pointer must not leave `body`.
  func withUnsafeBytes<Result, Failure: Error>(
    _ range: Range<Int>, _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    precondition(range.lowerBound >= 0 && range.upperBound <= count)
    return try unsafe body(UnsafeRawBufferPointer(rebasing: buffer[range]))
  }

  /// A part that is no secret: a name, an attribute, a setting.
  func bytes(_ range: Range<Int>) -> [UInt8] {
    unsafe withUnsafeBytes(range) { unsafe Array($0) }
  }

  /// nil: it is not UTF-8.
  func text(_ range: Range<Int>) -> String? {
    unsafe withUnsafeBytes(range) { unsafe String(validating: $0, as: UTF8.self) }
  }

  func starts(_ text: String, at index: Int = 0) -> Bool {
    index + text.utf8.count <= count && zip(index..., text.utf8).allSatisfy { self[$0] == $1 }
  }
}

/// Why something is not what it should be. It says where, and holds no value.
public struct TransferError: Error {
  public let reason: String

  public init(_ reason: String) {
    self.reason = reason
  }

  static func system(_ error: Int32) -> String {
    unsafe strerror(error).map { unsafe String(cString: $0) } ?? "error \(error)"
  }

  init(_ error: SecretMemoryError) {
    self.init("there is not enough locked memory for it; `ulimit -l` says how much there is")
  }
}
