/// Values by numbers that are given one after the other, such as those of files: little more room than the values have.
///
/// There is one for each file that the kernel knows, of which there may be a million; a `Dictionary` has room for up to three times as
/// many, beside their keys. Numbers far from each other are kept too, in some ten times the room of a value.
package struct NumberTable<Value: Sendable>: Sendable {
  /// The values of 32 numbers in a row, as far as they are there: in the order of their numbers, which the bits say.
  private struct Page {
    var bits: UInt32 = 0
    var values: [Value] = []

    /// Where the value of a number is, or would be.
    func index(_ bit: UInt32) -> Int { (bits & (bit &- 1)).nonzeroBitCount }
  }

  private var pages: [UInt64: Page] = [:]
  /// The number of values.
  package private(set) var count = 0

  /// An empty table.
  package init() {}

  private static func place(_ number: UInt64) -> (page: UInt64, bit: UInt32) {
    (number >> 5, 1 << (number & 31))
  }

  /// The value of a number; nil: it has none. Setting nil removes it.
  package subscript(number: UInt64) -> Value? {
    get {
      let (key, bit) = Self.place(number)
      guard let page = pages[key], page.bits & bit != 0 else { return nil }
      return page.values[page.index(bit)]
    }
    set {
      if let newValue { updateValue(newValue, for: number) } else { removeValue(for: number) }
    }
  }

  /// Returns the value before; nil: there was none.
  @discardableResult package mutating func updateValue(_ value: Value, for number: UInt64) -> Value? {
    let (key, bit) = Self.place(number)
    let old = Self.put(value, bit, &pages[key, default: Page()])
    if old == nil { count += 1 }
    return old
  }

  private static func put(_ value: Value, _ bit: UInt32, _ page: inout Page) -> Value? {
    let index = page.index(bit)
    guard page.bits & bit == 0 else {
      defer { page.values[index] = value }
      return page.values[index]
    }
    page.bits |= bit
    page.values.insert(value, at: index)
    return nil
  }

  /// Returns the value; nil: there was none.
  @discardableResult package mutating func removeValue(for number: UInt64) -> Value? {
    let (key, bit) = Self.place(number)
    guard let found = pages.index(forKey: key), pages.values[found].bits & bit != 0 else { return nil }
    count -= 1
    let index = pages.values[found].index(bit)
    guard pages.values[found].bits != bit else {
      let value = pages.remove(at: found).value.values[index]
      shrink()
      return value
    }
    pages.values[found].bits &= ~bit
    return pages.values[found].values.remove(at: index)
  }

  /// A `Dictionary` keeps its room.
  private mutating func shrink() {
    if pages.capacity > 64, pages.count * 8 < pages.capacity {
      pages = Dictionary(uniqueKeysWithValues: Array(pages))
    }
  }

  /// The values, in no particular order.
  package var values: [Value] { pages.values.flatMap(\.values) }
}
