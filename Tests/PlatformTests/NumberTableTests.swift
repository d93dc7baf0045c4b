import Testing

@testable import Platform

/// Values by numbers, compared with a dictionary of the same values.
struct NumberTableTests {
  @Test func hasTheValuesOfADictionary() {
    var (table, dictionary) = (NumberTable<UInt64>(), [UInt64: UInt64]())
    var generator = SystemRandomNumberGenerator()
    for step in 0..<20_000 {
      // Near each other, far from each other, and at the ends.
      let number = [UInt64.random(in: 0..<200), .random(in: 0...(.max)), .max - .random(in: 0..<40)][step % 3]
      if Bool.random(using: &generator) {
        #expect(
          table.updateValue(UInt64(step), for: number) == dictionary.updateValue(UInt64(step), forKey: number)
        )
      } else {
        #expect(table.removeValue(for: number) == dictionary.removeValue(forKey: number))
      }
      #expect(table[number] == dictionary[number])
    }
    #expect(table.count == dictionary.count)
    #expect(table.values.sorted() == dictionary.values.sorted())
    for number in dictionary.keys { table[number] = nil }
    #expect(table.count == 0)
    #expect(table.values.isEmpty)
  }
}
