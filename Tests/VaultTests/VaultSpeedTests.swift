import Glibc
import Model
import SecretMemory
import Store
import StoreConformance
import Testing

@testable import Vault

/// Numbers for people; `KEYHOLE_MEASURE=1 swift test -c release --filter VaultSpeed`.
@Suite(.enabled(if: unsafe getenv("KEYHOLE_MEASURE") != nil), .serialized) struct VaultSpeedTests {
  @Test func tenThousandItems() throws {
    let fixture = try VaultFixture()
    let engine = try fixture.open()
    let clock = ContinuousClock()
    var items: [Item] = []
    let secret = try KeychainSamples.secret("correct horse battery")
    try engine.fill(10_000, secret)
    items = try engine.items()
    print("Item: \(MemoryLayout<Item>.stride) bytes")
    let before = residentKiB()
    let opening = try clock.measure {
      let other = try fixture.open()
      let listed = try other.items()
      #expect(listed.count == 10_000)
      print("resident: +\(residentKiB() - before) KiB for the second engine and its items")
    }
    print("open + items of 10,000: \(opening)")
    for label in ["first", "again"] {
      let reading = try clock.measure {
        for item in items.prefix(4000) { _ = try engine.secret(of: item.id) }
      }
      print("secret(of:), \(label): \(reading / 4000)")
    }
    let looking = try clock.measure {
      for _ in 0..<10_000 { _ = try engine.changes() }
    }
    print("changes(), nothing new: \(looking / 10_000)")
    let writing = try clock.measure {
      for item in items.prefix(500) { try engine.set(item.id, [1, 2, 3]) }
    }
    print("rewrite: \(writing / 500)")
  }
}

func residentKiB() -> Int {
  guard let file = unsafe fopen("/proc/self/statm", "r") else { return 0 }
  defer { unsafe fclose(file) }
  var line = [CChar](repeating: 0, count: 128)
  unsafe fgets(&line, 128, file)
  let fields = String(decoding: line.map { UInt8(bitPattern: $0) }, as: UTF8.self).split(separator: " ")
  return (fields.count > 1 ? Int(fields[1]) ?? 0 : 0) * 4
}
