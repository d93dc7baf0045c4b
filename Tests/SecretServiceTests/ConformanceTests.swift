import KeyringHarness
import Model
import SecretService
import Store
import StoreConformance
import Testing

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

  /// A Secret Service has its own times and its own idea of a schema, and says which collection it was.
  private static func comparable(_ item: Item) -> Item {
    var item = item
    (item.created, item.modified, item.collection) = (KeychainSamples.time, KeychainSamples.time, nil)
    item.attributes["xdg:schema"] = nil
    return item
  }
}
