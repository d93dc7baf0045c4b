import Crypto
import Model
import StoreConformance
import Testing

@testable import VaultRecords

/// Keys that are derived: parameters in a file are hostile input.
@Suite struct PassphraseTests {
  @Test(arguments: [
    [14, 8, 1], [17, 8, 1], [20, 8, 1], [16, 8, 4],
  ])
  func sensibleCostsAreTaken(numbers: [UInt32]) throws {
    let parameters = try PassphraseParameters(bytes(numbers))
    #expect(parameters.bytes == bytes(numbers))
  }

  @Test(arguments: [
    [13, 8, 1], [23, 8, 1], [40, 8, 1], [0, 8, 1], [21, 8, 1], [255, 8, 1], [17, 0, 1], [17, 32, 1],
    [17, .max, 1],
    [17, 8, 0], [17, 8, 5], [17, 8, .max], [22, 8, 4],
  ])
  func absurdCostsAreRefusedBeforeAnythingIsDerived(numbers: [UInt32]) throws {
    #expect(throws: StoreError.damaged(what: "the cost of a key slot")) {
      _ = try PassphraseParameters(bytes(numbers))
    }
  }

  @Test func parametersOfAnotherLengthAreDamaged() throws {
    for count in [0, 31, 40, 42] {
      let bytes = [UInt8](repeating: 8, count: count)
      #expect(throws: StoreError.damaged(what: "a key slot")) { _ = try PassphraseParameters(bytes) }
    }
  }

  private func bytes(_ numbers: [UInt32]) -> [UInt8] {
    var writer = FieldWriter()
    writer.put(raw: [UInt8](repeating: 7, count: 32))
    writer.put(raw: UInt8(truncatingIfNeeded: numbers[0]))
    writer.put(raw: numbers[1])
    writer.put(raw: numbers[2])
    return writer.bytes
  }

  /// The expected key is what Python's hashlib makes of the same.
  @Test func derivationIsScrypt() throws {
    let parameters = try PassphraseParameters(bytes([14, 8, 1]))
    let key = try parameters.derive(KeychainSamples.secret("pleaseletmein"))
    let hex = key.array.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }
    #expect(hex.joined() == "d798f00a253b1ec5c0ac07e5efb4f595a5c0ea9e38ca7ea127e2a7515fdb09c2")
  }

  @Test func privateKeyOfARecoveryCodeFollowsFromIt() throws {
    let parameters = [UInt8](repeating: 7, count: 32)
    let code = SlotSecret(.recoveryCode, try KeychainSamples.secret("sixteen bytes..."))
    let first = try code.privateKey(parameters)
    #expect(try first.rawRepresentation == code.privateKey(parameters).rawRepresentation)
    // Another kind of slot has another key of the same bytes.
    let credential = SlotSecret(.credential, try KeychainSamples.secret("sixteen bytes..."))
    #expect(try first.rawRepresentation != credential.privateKey(parameters).rawRepresentation)
    #expect(throws: StoreError.damaged(what: "a key slot")) { try code.privateKey([]) }
  }
}
