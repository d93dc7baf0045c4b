import Dispatch
import Synchronization
import Testing

@testable import SecretMemory

@Suite struct SecretBytesTests {
  private static func secret(_ bytes: [UInt8]) throws -> SecretBytes {
    var secret = try SecretBytes(count: bytes.count)
    unsafe secret.withUnsafeMutableBytes { unsafe $0.copyBytes(from: bytes) }
    return secret
  }

  private static func bytes(_ secret: borrowing SecretBytes) -> [UInt8] {
    unsafe secret.withUnsafeBytes { unsafe Array($0) }
  }

  private static func pattern(_ count: Int, _ seed: Int = 1) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ seed) }
  }

  @Test(arguments: [0, 1, 63, 64, 65, 4095, 4096, 16_383, 16_384, 16_385, 131_072, 131_073, 1 << 20])
  func secretOfAnySizeIsKept(size: Int) throws {
    let pattern = Self.pattern(size)
    let secret = try Self.secret(pattern)
    let copy = try SecretBytes(copying: secret)
    let (count, isEmpty) = (secret.count, secret.isEmpty)
    #expect(count == size && isEmpty == (size == 0))
    #expect(Self.bytes(secret) == pattern && Self.bytes(copy) == pattern)
    #expect(Self.bytes(try SecretBytes(count: size)).allSatisfy { $0 == 0 })
  }

  @Test func copyIsItsOwn() throws {
    let original = try Self.secret([1, 2, 3])
    var copy = try SecretBytes(copying: original)
    unsafe copy.withUnsafeMutableBytes { unsafe $0[0] = 9 }
    #expect(Self.bytes(original) == [1, 2, 3] && Self.bytes(copy) == [9, 2, 3])
  }

  @Test func growthKeepsWhatIsThereAndAddsZeros() throws {
    var secret = try Self.secret([1, 2, 3])
    var expected: [UInt8] = [1, 2, 3]
    for size in [64, 65, 128, 4096, 16_384, 20_000, 200_000] {
      try secret.resize(to: size)
      expected += [UInt8](repeating: 0, count: size - expected.count)
      #expect(Self.bytes(secret) == expected)
    }
  }

  @Test func whatIsCutOffIsZeroWhenItComesBack() throws {
    var secret = try Self.secret(Self.pattern(100))
    try secret.resize(to: 10)
    try secret.resize(to: 100)
    #expect(Self.bytes(secret) == Self.pattern(100).prefix(10) + [UInt8](repeating: 0, count: 90))
    try secret.resize(to: 0)
    let isEmpty = secret.isEmpty
    #expect(isEmpty)
    try secret.resize(to: 3)
    #expect(Self.bytes(secret) == [0, 0, 0])
  }

  @Test func growthReservesLittleBesideWhatIsThere() throws {
    var secret = try Self.secret(Self.pattern(20_000))
    for size in stride(from: 64 * 1024, through: 1 << 20, by: 64 * 1024) {
      try secret.resize(to: size)
      let capacity = secret.capacity
      #expect(capacity >= size && capacity <= size + max(64 * 1024, size / 4))
    }
    #expect(Self.bytes(secret) == Self.pattern(20_000) + [UInt8](repeating: 0, count: 1 << 20 - 20_000))
  }

  @Test func truncationGivesLockedMemoryBack() throws {
    for pinnable in [false, true] {
      var secret = pinnable ? try SecretBytes(pinnable: 1 << 20) : try SecretBytes(count: 1 << 20)
      try secret.write(Self.pattern(1 << 20).span, at: 0)
      for size in [700_000, 400_000, 100_000, 10_000] {
        try secret.resize(to: size)
        let capacity = secret.capacity
        #expect(capacity <= size + 256 * 1024 + 4096)
        #expect(Self.bytes(secret) == Array(Self.pattern(1 << 20).prefix(size)))
        try secret.resize(to: size + 300_000)
        #expect(
          Self.bytes(secret) == Self.pattern(1 << 20).prefix(size) + [UInt8](repeating: 0, count: 300_000))
      }
    }
  }

  /// The file of a mapping keeps its pages as long as any part of it is mapped.
  @Test func manySmallCutsGiveTheMemoryItselfBack() throws {
    var secret = try SecretBytes(count: 1 << 20)
    for size in stride(from: 1 << 20, through: 100_000, by: -60_000) {
      try secret.resize(to: size)
      let (peak, count) = (secret.peak, secret.count)
      #expect(peak <= max(4 * count + 4096, 1 << 20))
    }
    let peak = secret.peak
    #expect(peak < 1 << 19)
  }

  @Test func writesAreJoinedAndGapsAreZeros() throws {
    var secret = try SecretBytes()
    var expected: [UInt8] = []
    for (offset, count) in [(0, 5), (3, 4), (200, 3), (100, 50), (7, 0), (203, 20_000), (0, 1)] {
      let part = Self.pattern(count, offset)
      try unsafe part.withUnsafeBytes { try unsafe secret.write($0, at: offset) }
      expected += [UInt8](repeating: 0, count: max(0, offset + count - expected.count))
      expected.replaceSubrange(offset..<offset + count, with: part)
      #expect(Self.bytes(secret) == expected)
    }
    let end: [UInt8] = [1, 2]
    try unsafe end.withUnsafeBytes { try unsafe secret.append($0) }
    #expect(Self.bytes(secret) == expected + end)
  }

  @Test func equalityIsThatOfTheBytes() throws {
    for size in [0, 1, 64, 5000] {
      let pattern = Self.pattern(size)
      #expect(try Self.areEqual(pattern, pattern))
      #expect(try !Self.areEqual(pattern, pattern + [0]))
      for index in [0, size / 2, size - 1] where size > 0 {
        var other = pattern
        other[index] ^= 0x80
        #expect(try !Self.areEqual(pattern, other))
      }
    }
  }

  private static func areEqual(_ left: [UInt8], _ right: [UInt8]) throws -> Bool {
    let one = try secret(left)
    let two = try secret(right)
    return one == two
  }

  @Test func droppedSecretLeavesZeros() throws {
    for size in [32, 64, 1000, 16_384] {
      let address = try Self.addressOfDropped(Self.pattern(size, 0x55))
      // The first free range that fits is given out: hold what comes until that one does.
      var isFound = false
      try Self.allocating(size, until: address, limit: 1000) { bytes in
        isFound = true
        #expect(bytes.allSatisfy { $0 == 0 })
      }
      #expect(isFound, "the memory of \(size) bytes was not given out again")
    }
  }

  private static func addressOfDropped(_ bytes: [UInt8]) throws -> UInt {
    let secret = try secret(bytes)
    return unsafe secret.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
  }

  private static func allocating(
    _ count: Int, until address: UInt, limit: Int, _ body: ([UInt8]) -> Void
  ) throws {
    guard limit > 0 else { return }
    let secret = try SecretBytes(count: count)
    let present = unsafe secret.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
    if present == address { return body(bytes(secret)) }
    try allocating(count, until: address, limit: limit - 1, body)
    // Held until here, so that the next one gets other memory.
    let held = secret.count
    #expect(held == count)
  }

  @Test func manyThreadsShareTheHeap() {
    let failures = Mutex<[String]>([])
    DispatchQueue.concurrentPerform(iterations: 8) { thread in
      do {
        for round in 0..<200 {
          let size = (thread * 7919 + round * 104_729) % 20_000
          var secret = try Self.secret(Self.pattern(size, thread))
          try secret.resize(to: size + 100)
          let expected = Self.pattern(size, thread) + [UInt8](repeating: 0, count: 100)
          if Self.bytes(secret) != expected { failures.withLock { $0.append("\(thread)/\(round)") } }
        }
      } catch { failures.withLock { $0.append("\(error)") } }
    }
    #expect(failures.withLock { $0 } == [])
  }

  @Test func memoryThatIsCutOffIsGivenBack() throws {
    var secret = try SecretBytes(count: 1 << 20)
    unsafe secret.withUnsafeMutableBytes { unsafe $0[0] = 7 }
    try secret.resize(to: 100)
    unsafe secret.withUnsafeBytes { #expect(unsafe $0.count == 100 && $0[0] == 7 && $0[99] == 0) }
    #expect(secret.capacity == 128)
    try secret.resize(to: 0)
    #expect(secret.capacity == 128, "the slab's blocks stay")
  }
}
