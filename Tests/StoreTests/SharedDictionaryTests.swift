import Model
import Store
import Testing

@Suite(.timeLimit(.minutes(1))) struct SharedDictionaryTests {
  private static func keys(_ count: Int) -> [ExactString] { (0..<count).map { ExactString("key \($0)") } }

  @Test func itHoldsWhatADictionaryHolds() {
    var shared: SharedDictionary<Int> = [:]
    var plain: [ExactString: Int] = [:]
    var random = SystemRandomNumberGenerator()
    for number in 0..<5000 {
      let key = ExactString("key \(Int.random(in: 0..<900, using: &random))")
      let value = Bool.random(using: &random) ? number : nil
      shared[key] = value
      plain[key] = value
      #expect(shared.count == plain.count && shared[key] == value)
    }
    #expect(shared.dictionary == plain && shared == SharedDictionary(plain))
    #expect(Set(shared.keys) == Set(plain.keys) && shared.values.sorted() == plain.values.sorted())
    #expect(shared.mapValues { $0 + 1 }.dictionary == plain.mapValues { $0 + 1 })
  }

  @Test func aCopyStaysAsItWas() {
    let first = SharedDictionary(uniqueKeysWithValues: Self.keys(1000).map { ($0, 1) })
    var second = first
    second["key 7"] = 2
    #expect(second.removeValue(forKey: "key 8") == 1 && second.removeValue(forKey: "key 8") == nil)
    #expect(first["key 7"] == 1 && first["key 8"] == 1 && first.count == 1000)
    #expect(second["key 7"] == 2 && second["key 8"] == nil && second.count == 999)
  }

  @Test func differencesAreWhatWasChanged() {
    let first = SharedDictionary(uniqueKeysWithValues: Self.keys(1000).map { ($0, 1) })
    var second = first
    second["key 7"] = 2
    second["key 8"] = nil
    second["new"] = 3
    second["key 9"] = 5
    second["key 9"] = 1
    let found = second.differences(from: first).map { "\($0.key) \($0.before ?? 0) \($0.after ?? 0)" }
    #expect(found.sorted() == ["key 7 1 2", "key 8 1 0", "new 0 3"])
    #expect(first != second && first.differences(from: first).isEmpty)
  }

  /// A removal moves the last entry of a part to another place.
  @Test func differencesOfManyChangesAreThoseOfDictionaries() {
    var random = SystemRandomNumberGenerator()
    for count in [1, 12, 200, 3000] {
      let first = SharedDictionary(uniqueKeysWithValues: Self.keys(count).map { ($0, 0) })
      var second = first
      var expected: [String: String] = [:]
      for number in 1...(count / 2 + 3) {
        let key = ExactString("key \(Int.random(in: 0..<(count * 5 / 4 + 1), using: &random))")
        let value = Int.random(in: 0..<3, using: &random) == 0 ? nil : number
        second[key] = value
        expected[key.string] = "\(first[key] ?? -1) \(value ?? -1)"
      }
      expected = expected.filter { $0.value != "-1 -1" && $0.value != "0 0" }
      let found = second.differences(from: first).map {
        ($0.key.string, "\($0.before ?? -1) \($0.after ?? -1)")
      }
      #expect(found.count == expected.count && Dictionary(found) { $0 + $1 } == expected)
    }
  }

  @Test func onlyWhatIsNotSharedIsCompared() {
    let first = SharedDictionary(uniqueKeysWithValues: Self.keys(10_000).map { ($0, 1) })
    var second = first
    second["key 7"] = 2
    var compared = 0
    let differences = second.differences(from: first) { (left, right) in
      compared += 1
      return left == right
    }
    #expect(differences.count == 1)
    // Of 10,000, a part holds about 40.
    #expect(compared < 400)
  }

  @Test func emptyOnesAreEqual() {
    var dictionary: SharedDictionary<Int> = ["a": 1]
    dictionary["a"] = nil
    #expect(dictionary.isEmpty && dictionary == [:] && dictionary.keys.isEmpty)
  }
}
