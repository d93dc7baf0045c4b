import Glibc
import Model
import SecretMemory
import Store
import StoreConformance
import Testing

@testable import Vault

@Suite(.serialized) struct VaultAtRestTests {
  @Test func noFileShowsANameAnAttributeOrASecret() throws {
    let fixture = try VaultFixture()
    let engine = try fixture.open()
    var item = KeychainSamples.full()
    item.identity = .internet(InternetIdentity(server: "MARKER-server", account: "MARKER-account"))
    item.attributes = ["MARKER-attribute": Array("MARKER-value".utf8)]
    item.label = "MARKER-label"
    let added = try engine.add(item, "MARKER-secret")
    try engine.set(added.id, Array("MARKER-secret two".utf8))
    try expectNoMarker(fixture)
    try engine.remove([added.id])
    try expectNoMarker(fixture)
  }

  @Test func onlyTheSizeBucketShows() throws {
    let fixture = try VaultFixture()
    let engine = try fixture.open()
    try engine.add(KeychainSamples.generic("a"), "1")
    try engine.add(KeychainSamples.generic("b"), String(repeating: "x", count: 28))
    #expect(try fixture.number("SELECT count(DISTINCT length(sealed)) FROM secret") == 1)
  }

  /// A secret that was written, read and dropped is nowhere in the process's memory.
  @Test func nothingOfASecretStaysInMemory() throws {
    let fixture = try VaultFixture()
    let engine = try fixture.open()
    let seed = UInt64.random(in: .min ... .max)
    var id = ItemID(rawValue: "")
    do {
      let secret = try Marker(seed: seed).secret()
      id = try engine.add(KeychainSamples.generic("a"), secret: secret).id
    }
    for _ in 0..<3 {
      let secret = try engine.secret(of: id)
      #expect(secret.count == 200)
    }
    _ = try engine.rewrite(id, readingSecret: true) { _, secret throws(StoreError) in
      do { try secret.resize(to: 200) } catch { throw .outOfMemory }
    }
    _ = try engine.update([id]) { item throws(StoreError) in item.accessibility = .afterFirstUnlock }
    try engine.remove([id])
    #expect(Marker(seed: seed).residues() == 0)
    let kept = Array(Marker(seed: seed).end)
    #expect(Marker(seed: seed).residues() > 0, "the scan finds what is there: \(kept.count)")
  }

  private func expectNoMarker(_ fixture: VaultFixture) throws {
    for folder in [fixture.directory, fixture.state] {
      for name in names(in: folder) where name != "vault.reserve" {
        let bytes = contents(of: folder + "/" + name)
        #expect(!bytes.contains(Array("MARKER".utf8)), "\(name)")
        #expect(!bytes.contains(Array("exämple".utf8)), "\(name)")
      }
    }
  }
}

/// 200 bytes that follow from a seed, so that looking for them leaves no copy of them.
private struct Marker {
  let seed: UInt64

  func byte(_ index: Int) -> UInt8 {
    var word = seed &+ UInt64(index) &* 0x9E37_79B9_7F4A_7C15
    word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
    return UInt8(truncatingIfNeeded: (word ^ word >> 27) >> 24)
  }

  /// The last 24 bytes: the allocator overwrites the first 16 of what is freed.
  var end: [UInt8] { (176..<200).map(byte) }

  func secret() throws -> SecretBytes {
    var secret = try SecretBytes(count: 200)
    unsafe secret.withUnsafeMutableBytes { bytes in
      for index in 0..<200 { unsafe bytes[index] = byte(index) }
    }
    return secret
  }

  /// How often the end is in what /proc/self/mem shows; that is not the memory of `SecretBytes`.
  func residues() -> Int {
    let memory = unsafe open("/proc/self/mem", O_RDONLY)
    defer { close(memory) }
    let pattern = (176..<200).map { byte($0) ^ 0x5A }
    var found = 0
    for range in Self.mappings() {
      var start = range.lowerBound
      var chunk = [UInt8](repeating: 0, count: 1 << 20)
      while start < range.upperBound {
        let count = unsafe pread(memory, &chunk, min(chunk.count, range.upperBound - start), start)
        guard count > 0 else { break }
        found += Self.count(pattern, chunk, count)
        start += count == chunk.count ? count - 24 : count
      }
      unsafe chunk.withUnsafeMutableBytes { unsafe wipe($0) }
    }
    return found
  }

  private static func count(_ pattern: [UInt8], _ chunk: [UInt8], _ count: Int) -> Int {
    guard count >= pattern.count else { return 0 }
    let last = count - pattern.count
    return unsafe chunk.withUnsafeBytes { bytes in
      var (found, start) = (0, 0)
      while start <= last, let base = bytes.baseAddress,
        let hit = unsafe memchr(base + start, Int32(pattern[0] ^ 0x5A), last - start + 1)
      {
        start = unsafe UnsafeRawPointer(hit) - base
        if pattern.indices.allSatisfy({ unsafe bytes[start + $0] ^ 0x5A == pattern[$0] }) {
          found += 1
        }
        start += 1
      }
      return found
    }
  }

  private static func mappings() -> [Range<Int>] {
    String(decoding: contents(of: "/proc/self/maps"), as: UTF8.self).split(separator: "\n").compactMap {
      line in
      let fields = line.split(separator: " ")
      guard fields[1].hasPrefix("rw"), !line.contains("secretmem") else { return nil }
      let bounds = fields[0].split(separator: "-").compactMap { Int($0, radix: 16) }
      return bounds.count == 2 && bounds[0] < bounds[1] ? bounds[0]..<bounds[1] : nil
    }
  }
}
