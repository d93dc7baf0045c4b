import Model
import Testing

@testable import VaultRecords

@Suite struct ItemKeyTests {
  @Test func textIsThatOfAUUIDInLowerCase() {
    let key = ItemKey(high: 0x0123_4567_89ab_cdef, low: 0xfedc_ba98_7654_3210)
    #expect(key.text == "01234567-89ab-cdef-fedc-ba9876543210")
    #expect(ItemKey(key.id) == key)
    #expect(ItemKey(key.bytes.span) == key)
  }

  @Test(arguments: [
    "", "01234567-89ab-cdef-fedc-ba987654321", "01234567-89AB-cdef-fedc-ba9876543210",
    "01234567089ab-cdef-fedc-ba9876543210", "01234567-89ab-cdef-fedc-ba987654321g",
  ])
  func otherTextIsNoKey(text: String) {
    #expect(ItemKey(ItemID(rawValue: text)) == nil)
  }

  @Test(arguments: [0, 15, 17]) func otherLengthsAreNoKey(count: Int) {
    #expect(ItemKey([UInt8](repeating: 1, count: count).span) == nil)
  }

  @Test func witnessesAddUp() {
    let largest = Witness([UInt8](repeating: 0xFF, count: 32))
    let one = Witness([UInt8](repeating: 0, count: 31) + [1])
    var sum = Witness()
    sum += largest
    sum += one
    #expect(sum == Witness())
    sum += largest
    #expect(sum == largest && Witness(sum.bytes) == largest)
  }
}
