import Glibc
import TestSupport
import Testing

/// A secret that no chance brings about, and how to look for it.
struct Marker {
  let text: String
  /// The bytes to look for: the end of the text, because the first bytes of freed memory are soon used again.
  let needle: [UInt8]

  init(seed: UInt64 = .random(in: .min ... .max)) {
    var random = SplitMix64(seed: seed)
    let letters = Array("abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789")
    text = String((0..<200).compactMap { _ in letters.randomElement(using: &random) })
    needle = Array(text.utf8.suffix(24))
  }

  /// Looks for a key.
  init(key: [UInt8]) {
    text = ""
    needle = Array(key.suffix(24))
  }

  func count(in bytes: [UInt8]) -> Int {
    unsafe bytes.withUnsafeBytes { unsafe count(in: $0) }
  }

  private func count(in bytes: UnsafeRawBufferPointer) -> Int {
    guard bytes.count >= needle.count else { return 0 }
    var count = 0
    var at = 0
    while at <= bytes.count - needle.count {
      // memchr(3) first: a core has hundreds of megabytes.
      guard let start = bytes.baseAddress,
        let found = unsafe memchr(start + at, Int32(needle[0]), bytes.count - needle.count + 1 - at)
      else { break }
      at = unsafe UnsafeRawPointer(found) - start
      if unsafe memcmp(start + at, needle, needle.count) == 0 { count += 1 }
      at += 1
    }
    return count
  }

  /// How often it is in a file; a socket has no content.
  func count(inFile path: String) throws -> Int {
    guard try System.status(path).st_mode & S_IFMT != S_IFSOCK else { return 0 }
    return count(in: try System.read(path))
  }

  /// How often it is in the memory of a process, read from outside.
  func count(inMemoryOf process: pid_t) throws -> Int {
    let memory = try OpenFile("/proc/\(process)/mem", O_RDONLY)
    var count = 0
    var regions = 0
    for line in try System.text("/proc/\(process)/maps").split(separator: "\n") {
      let fields = line.split(separator: " ")
      let range = fields[0].split(separator: "-").compactMap { UInt64($0, radix: 16) }
      guard range.count == 2, fields[1].hasPrefix("r") else { continue }
      regions += 1
      count += try self.count(in: memory, from: range[0], to: range[1])
    }
    try #require(regions > 10)
    return count
  }

  private func count(in memory: OpenFile, from start: UInt64, to end: UInt64) throws -> Int {
    // In pieces that overlap, for one that lies across two.
    let piece: UInt64 = 16 << 20
    var count = 0
    var at = start
    while at < end, at < UInt64(Int.max) {
      let length = min(piece + UInt64(needle.count) - 1, end - at)
      // Some regions can't be read at all: the kernel's own, and memfd_secret's.
      if let bytes = try? memory.read(upTo: Int(length), at: Int(at)) { count += self.count(in: bytes) }
      at += piece
    }
    return count
  }
}
