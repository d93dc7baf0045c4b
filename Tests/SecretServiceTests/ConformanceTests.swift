import KeyringHarness
import Model
import SecretService
import Store
import StoreConformance
import Testing

@testable import Sealing

@Suite(.serialized, .timeLimit(.minutes(2))) struct ConformanceTests {
  @Test(arguments: KeychainConformance.cases)
  func keepsTheProtocol(_ test: KeychainConformance.Case) throws {
    let bus = try PrivateBus()
    defer { bus.stop() }
    try bus.startKeyring()
    try test.run(
      { try SecretServiceEngine(address: bus.address) }, comparable: Self.comparable,
      catchUp: { try ($0 as? SecretServiceEngine)?.catchUp() })
  }

  @Test(arguments: KeychainConformance.cases)
  func keepsTheProtocolWhereTheVaultSeals(_ test: KeychainConformance.Case) throws {
    let bus = try PrivateBus()
    defer { bus.stop() }
    try bus.startKeyring()
    try test.run(
      { try AllSealed(bus) }, comparable: Self.comparableSealed,
      catchUp: { try (($0 as? AllSealed)?.keychain as? SealingKeychain)?.catchUp() })
  }

  private static func comparableSealed(_ item: Item) -> Item {
    var item = comparable(item)
    item.isSealed = false
    return item
  }

  /// Without the one that tells an empty part of a name from none.
  private static let casesWithFields = KeychainConformance.cases.filter {
    $0.description != "identities differ by every part"
  }

  @Test(.enabled(if: PrivateBus.hasKeePassXC, "needs keepassxc"), arguments: casesWithFields)
  func keepsTheProtocolOnKeePassXC(_ test: KeychainConformance.Case) throws {
    let bus = try PrivateBus()
    defer { bus.stop() }
    try bus.startKeePassXC()
    try test.run(
      { try SecretServiceEngine(address: bus.address) }, comparable: Self.comparableFields,
      catchUp: { try ($0 as? SecretServiceEngine)?.catchUp() })
  }

  /// Its attributes are fields, one of them the label, and none of them empty.
  private static func comparableFields(_ item: Item) -> Item {
    var item = comparable(item)
    item.attributes["Title"] = nil
    item.attributes = item.attributes.filter { !$0.value.isEmpty }
    return item
  }

  /// A Secret Service has its own times and its own idea of a schema, and says which collection it was.
  private static func comparable(_ item: Item) -> Item {
    var item = item
    (item.created, item.modified, item.collection) = (KeychainSamples.time, KeychainSamples.time, nil)
    item.attributes["xdg:schema"] = nil
    return item
  }
}
