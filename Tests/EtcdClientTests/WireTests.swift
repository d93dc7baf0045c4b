import TestSupport
import Testing

@testable import EtcdClient

@Suite struct WireTests {
  /// All fields of a message, or nil where it is refused.
  private func read(_ bytes: [UInt8]) -> [String]? {
    var reader = WireReader(bytes)
    var fields: [String] = []
    do throws(WireError) {
      while let field = try reader.next() { fields.append("\(field.number) \(field.value)") }
      return fields
    } catch {
      return nil
    }
  }

  @Test(arguments: [0, 1, 127, 128, 300, 1 << 32, UInt64.max - 1, UInt64.max])
  func integerComesBack(_ value: UInt64) throws {
    var writer = WireWriter()
    writer.unsigned(3, value)
    writer.present(4, Int64(bitPattern: value))
    writer.bool(5, true)
    var reader = WireReader(writer.bytes)
    if value != 0 { #expect(try reader.next()?.unsigned() == value) }
    #expect(try reader.next()?.signed() == Int64(bitPattern: value))
    #expect(try reader.next()?.bool() == true)
    #expect(try reader.next() == nil)
  }

  @Test func bytesAndMessagesComeBack() throws {
    var inner = WireWriter()
    inner.bytes(1, [UInt8](repeating: 7, count: 200))
    var writer = WireWriter()
    writer.message(2, inner)
    writer.message(3, WireWriter())
    writer.bytes(4, [])
    var reader = WireReader(writer.bytes)
    var message = try #require(try reader.next()).message()
    #expect(try message.next()?.bytes().count == 200)
    var empty = try #require(try reader.next()).message()
    #expect(try empty.next() == nil)
    #expect(try reader.next() == nil)
  }

  @Test func fieldsThatNoMessageHasAreRead() {
    #expect(read([0x09, 1, 2, 3, 4, 5, 6, 7, 8, 0x15, 1, 2, 3, 4])?.count == 2)
  }

  @Test(
    arguments: [
      // Integers: cut, of more than ten bytes, of more than 64 bits.
      [0x08], [0x08, 0x80], [0x08] + [UInt8](repeating: 0x80, count: 10) + [0],
      [0x08] + [UInt8](repeating: 0xFF, count: 9) + [2],
      // Lengths: behind the end, larger than any memory.
      [0x0A, 1], [0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1],
      [0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F], [0x09, 1, 2, 3], [0x15, 1],
      // Field 0, a number of more than 29 bits, groups, and types that don't exist.
      [0x00, 1], [0x80, 0x80, 0x80, 0x80, 0x10, 1], [0x0B], [0x0C], [0x0E, 1], [0x0F, 1],
    ] as [[UInt8]])
  func malformedIsRefused(_ bytes: [UInt8]) {
    #expect(read(bytes) == nil)
  }

  @Test func wrongTypeIsRefused() {
    #expect(throws: WireError.self) { try ClusterHeader(WireReader([0x0A, 1, 1])) }
    #expect(throws: WireError.self) { try KeyValue(WireReader([0x08, 1])) }
    #expect(throws: WireError.self) { try RangeReply(WireReader([0x0D, 1, 1, 1, 1])) }
  }

  @Test func replyWithoutHeaderIsRefused() {
    #expect(throws: WireError.self) { try RangeReply(WireReader([0x20, 1])) }
    #expect(throws: WireError.self) { try TransactionReply([0x10, 1]) }
    #expect(throws: WireError.self) { try WatchReply([0x10, 1]) }
    #expect(throws: WireError.self) { try MemberStatus([]) }
  }

  @Test func keyWithoutNameOrRevisionIsRefused() {
    #expect(throws: WireError.self) { try KeyValue(WireReader([0x18, 1])) }
    #expect(throws: WireError.self) { try KeyValue(WireReader([0x0A, 1, 1])) }
    #expect(throws: Never.self) { try KeyValue(WireReader([0x0A, 1, 1, 0x18, 1])) }
  }

  @Test func tokenThatIsNoHeaderIsRefused() {
    #expect(throws: WireError.self) { try LoginReply([]) }
    #expect(throws: WireError.self) { try LoginReply([0x12, 3, 0x61, 0x0A, 0x62]) }
    #expect(throws: Never.self) { try LoginReply([0x12, 1, 0x61]) }
  }

  /// Bytes of the servers, changed at random: each decoder gives a value or refuses, and nothing else happens.
  @Test func mutationsAreReadOrRefused() {
    var random = SplitMix64(seed: 19)
    var (read, refused) = (0, 0)
    for _ in 0..<8_000 {
      var bytes = Samples.all.randomElement(using: &random) ?? []
      for _ in 0..<Int.random(in: 1...4, using: &random) { mutate(&bytes, &random) }
      for decode in Samples.decoders {
        if (try? decode(bytes)) != nil { read += 1 } else { refused += 1 }
      }
    }
    #expect(read > 1000 && refused > 1000)
  }

  private func mutate(_ bytes: inout [UInt8], _ random: inout SplitMix64) {
    let position = Int.random(in: 0...bytes.count, using: &random)
    switch Int.random(in: 0..<4, using: &random) {
    case 0: bytes.removeSubrange(position...)
    case 1: bytes.insert(.random(in: 0...255, using: &random), at: position)
    case 2 where position < bytes.count: bytes[position] = .random(in: 0...255, using: &random)
    default: bytes += Samples.all.randomElement(using: &random)?.prefix(position) ?? []
    }
  }
}

/// Replies as servers send them.
enum Samples {
  static let decoders: [@Sendable ([UInt8]) throws -> Void] = [
    { _ = try RangeReply(WireReader($0)) }, { _ = try TransactionReply($0) }, { _ = try WatchReply($0) },
    { _ = try MemberStatus($0) }, { _ = try ClusterLease($0) }, { _ = try LoginReply($0) },
  ]

  static var all: [[UInt8]] { [range, transaction, watch, status, lease] }

  static func header(revision: Int64 = 7, cluster: UInt64 = 0xCDF8_18B6) -> WireWriter {
    var writer = WireWriter()
    writer.unsigned(1, cluster)
    writer.unsigned(2, 0x8E9E_05C5)
    writer.signed(3, revision)
    writer.unsigned(4, 2)
    return writer
  }

  static func keyValue(_ key: String, modified: Int64, value: String = "v") -> WireWriter {
    var writer = WireWriter()
    writer.bytes(1, Array(key.utf8))
    writer.signed(2, 1)
    writer.signed(3, modified)
    writer.signed(4, 1)
    writer.bytes(5, Array(value.utf8))
    return writer
  }

  static var range: [UInt8] {
    var writer = WireWriter()
    writer.message(1, header())
    for number in 1...3 { writer.message(2, keyValue("key\(number)", modified: Int64(number))) }
    writer.bool(3, true)
    writer.signed(4, 9)
    return writer.bytes
  }

  static var transaction: [UInt8] {
    var read = WireWriter()
    read.message(2, keyValue("a", modified: 3))
    var (first, second) = (WireWriter(), WireWriter())
    first.message(1, read)
    second.message(2, WireWriter())
    var writer = WireWriter()
    writer.message(1, header())
    writer.bool(2, true)
    writer.message(3, first)
    writer.message(3, second)
    return writer.bytes
  }

  static var watch: [UInt8] {
    var event = WireWriter()
    event.unsigned(1, 1)
    event.message(2, keyValue("gone", modified: 6))
    var writer = WireWriter()
    writer.message(1, header())
    writer.signed(2, 0)
    writer.message(11, event)
    return writer.bytes
  }

  static var status: [UInt8] {
    var writer = WireWriter()
    writer.message(1, header())
    writer.bytes(2, Array("3.4.23".utf8))
    writer.signed(3, 20480)
    writer.unsigned(4, 5)
    writer.bytes(8, Array("memberID:5 alarm:NOSPACE ".utf8))
    return writer.bytes
  }

  static var lease: [UInt8] {
    var writer = WireWriter()
    writer.message(1, header())
    writer.signed(2, 77)
    writer.signed(3, 5)
    return writer.bytes
  }
}
