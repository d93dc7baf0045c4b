import Testing
import VaultRecords

@testable import Cluster

@Suite struct IDTableTests {
  /// The ids share the bits by which they are placed, so that many are not where they would be alone.
  private func ids(_ count: Int) -> [ItemKey] {
    (0..<count).map { ItemKey(high: UInt64($0), low: UInt64($0 % 7)) }
  }

  @Test(arguments: [true, false]) func itHoldsWhatADictionaryHolds(_ collides: Bool) {
    let ids = collides ? ids(200) : (0..<200).map { _ in ItemKey.random() }
    var (table, dictionary) = (IDTable<Int>(), [ItemKey: Int]())
    for round in 0..<5_000 {
      guard let id = ids.randomElement() else { return }
      // It grows in one half of the rounds, and shrinks in the other.
      if Int.random(in: 0..<4) < (round < 2_500 ? 3 : 1) {
        #expect(table.updateValue(round, forKey: id) == dictionary.updateValue(round, forKey: id))
      } else {
        #expect(table.removeValue(forKey: id) == dictionary.removeValue(forKey: id))
      }
      #expect(table.count == dictionary.count)
      if round.isMultiple(of: 100) {
        for id in ids { #expect(table[id] == dictionary[id]) }
      }
    }
    #expect(Dictionary(table.map { ($0.id, $0.value) }) { $1 } == dictionary)
    for id in ids { table.removeValue(forKey: id) }
    #expect(table.count == 0 && table.keys.isEmpty)
  }

  @Test func copiesAreIndependent() {
    let ids = ids(20)
    var table = IDTable<Int>()
    table.reserveCapacity(20)
    for (number, id) in ids.enumerated() { table.updateValue(number, forKey: id) }
    let copy = table
    table.removeValue(forKey: ids[3])
    table.updateValue(100, forKey: ids[4])
    #expect(copy[ids[3]] == 3 && copy[ids[4]] == 4 && copy.count == 20)
    #expect(table[ids[3]] == nil && table[ids[4]] == 100 && table.count == 19)
  }
}
