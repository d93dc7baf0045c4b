import Model

extension BinaryReader {
  /// The value of one key of the dictionary at the top, without the other values: what nothing leads to is not looked at.
  ///
  /// - Returns: the value, nil where there is no such key, and the number of keys.
  /// - Throws: for another value at the top, and what is malformed in the keys or the value.
  mutating func find(_ key: ExactString) throws(PropertyListError) -> (value: SettingValue?, count: Int) {
    let start = try offset(of: top)
    guard kind(at: start) == Kind.dictionary else {
      throw PropertyListError("what it holds is no dictionary")
    }
    let (first, count) = try length(Int(bytes[start] & 15), start + 1, unit: referenceSize * 2)
    let wanted = Array(key.utf8)
    var found: Int?
    for index in 0..<count where try isString(at: reference(first, index), wanted) { found = index }
    guard let found else { return (nil, count) }
    return (try object(reference(first, count + found), depth: 1), count)
  }

  private func reference(_ first: Int, _ index: Int) throws(PropertyListError) -> Int {
    guard let reference = Self.number(bytes, at: first + index * referenceSize, size: referenceSize) else {
      throw PropertyListError("a reference to nothing")
    }
    return reference
  }

  private func kind(at offset: Int) -> Int { Int(bytes[offset] >> 4) }

  private func isString(at index: Int, _ wanted: [UInt8]) throws(PropertyListError) -> Bool {
    let start = try offset(of: index)
    let low = Int(bytes[start] & 15)
    switch kind(at: start) {
    case Kind.ascii: return try content(low, start + 1, unit: 1).elementsEqual(wanted)
    case Kind.utf16: return try utf16(content(low, start + 1, unit: 2)).utf8.elementsEqual(wanted)
    default: throw PropertyListError("a key that is no string")
    }
  }
}
