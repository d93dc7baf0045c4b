/// SHA-256 of FIPS 180-4, for the names of files and the digests of programs.
///
/// A program that uses settings only shall build without a library of cryptography, and of that these two uses need one
/// hash. Nothing secret belongs in here: the state is not wiped. The vault and sealed files use swift-crypto.
public struct SHA256Hasher: Sendable {
  private static let blockSize = 64

  private var state: InlineArray<8, UInt32> = [
    0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19,
  ]
  /// The bytes that fill no block yet: always less than one.
  private var rest: [UInt8] = []
  private var byteCount: UInt64 = 0

  /// Begins with no bytes.
  public init() {}

  /// Adds bytes: any number of times, of any lengths, before `finalize()`.
  public mutating func update(_ bytes: Span<UInt8>) {
    byteCount &+= UInt64(bytes.count)
    var start = 0
    if !rest.isEmpty {
      start = min(Self.blockSize - rest.count, bytes.count)
      append(bytes.extracting(..<start))
      guard rest.count == Self.blockSize else { return }
      let block = rest
      Self.compress(block.span, at: 0, into: &state)
      rest.removeAll(keepingCapacity: true)
    }
    while bytes.count - start >= Self.blockSize {
      Self.compress(bytes, at: start, into: &state)
      start += Self.blockSize
    }
    append(bytes.extracting(start...))
  }

  /// The 32 bytes of the digest of everything that was added.
  public consuming func finalize() -> [UInt8] {
    let end = rest + Self.padding(after: byteCount)
    for start in stride(from: 0, to: end.count, by: Self.blockSize) {
      Self.compress(end.span, at: start, into: &state)
    }
    let words = state
    return words.indices.flatMap { index in
      stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: words[index] >> UInt32($0)) }
    }
  }

  /// The 32 bytes of the digest of one array.
  public static func hash(_ bytes: [UInt8]) -> [UInt8] {
    var hasher = SHA256Hasher()
    hasher.update(bytes.span)
    return hasher.finalize()
  }
}

extension SHA256Hasher {
  private mutating func append(_ bytes: Span<UInt8>) {
    for index in bytes.indices { rest.append(bytes[index]) }
  }

  /// One bit that is set, zeros, and the number of bits in eight bytes, to the end of a block.
  private static func padding(after byteCount: UInt64) -> [UInt8] {
    let bitCount = byteCount &* 8
    let zeros = (119 - Int(byteCount % 64)) % 64
    return [0x80] + [UInt8](repeating: 0, count: zeros)
      + stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: bitCount >> UInt64($0)) }
  }

  /// Section 6.2.2 of FIPS 180-4, with its names, for the block that begins at an index.
  ///
  /// Written with wrapping operators and plain loops: a debug build hashes programs of many megabytes, too.
  private static func compress(
    _ bytes: Span<UInt8>, at start: Int, into state: inout InlineArray<8, UInt32>
  ) {
    let w = schedule(bytes, at: start)
    var (a, b, c, d) = (state[0], state[1], state[2], state[3])
    var (e, f, g, h) = (state[4], state[5], state[6], state[7])
    var t = 0
    while t < 64 {
      let sum1 = (e &>> 6 | e &<< 26) ^ (e &>> 11 | e &<< 21) ^ (e &>> 25 | e &<< 7)
      let choice = (e & f) ^ (~e & g)
      let t1 = h &+ sum1 &+ choice &+ constants[t] &+ w[t]
      let sum0 = (a &>> 2 | a &<< 30) ^ (a &>> 13 | a &<< 19) ^ (a &>> 22 | a &<< 10)
      let majority = (a & b) ^ (a & c) ^ (b & c)
      let t2 = sum0 &+ majority
      h = g
      g = f
      f = e
      e = d &+ t1
      d = c
      c = b
      b = a
      a = t1 &+ t2
      t &+= 1
    }
    state[0] &+= a
    state[1] &+= b
    state[2] &+= c
    state[3] &+= d
    state[4] &+= e
    state[5] &+= f
    state[6] &+= g
    state[7] &+= h
  }

  /// The words of a block, and those that follow from them.
  private static func schedule(_ bytes: Span<UInt8>, at start: Int) -> InlineArray<64, UInt32> {
    var w = InlineArray<64, UInt32>(repeating: 0)
    var t = 0
    while t < 16 {
      let byte = start &+ 4 &* t
      let high = UInt32(bytes[byte]) &<< 24 | UInt32(bytes[byte &+ 1]) &<< 16
      w[t] = high | UInt32(bytes[byte &+ 2]) &<< 8 | UInt32(bytes[byte &+ 3])
      t &+= 1
    }
    while t < 64 {
      let (x, y) = (w[t &- 15], w[t &- 2])
      let small0 = (x &>> 7 | x &<< 25) ^ (x &>> 18 | x &<< 14) ^ x &>> 3
      let small1 = (y &>> 17 | y &<< 15) ^ (y &>> 19 | y &<< 13) ^ y &>> 10
      w[t] = w[t &- 16] &+ small0 &+ w[t &- 7] &+ small1
      t &+= 1
    }
    return w
  }

  private static let constants: InlineArray<64, UInt32> = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
  ]
}
