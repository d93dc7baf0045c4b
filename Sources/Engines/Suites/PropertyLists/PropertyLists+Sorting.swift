import Model

extension PropertyLists {
  /// Where a key lies in the bytes of all keys.
  private struct Place {
    let start: Int
    let end: Int
    let entry: Int
  }

  /// Entries in the order of their keys' scalars, which is that of their bytes.
  ///
  /// The bytes are laid side by side first: comparing strings in place counts references up and down, and
  /// took half of the time of writing a suite.
  static func sorted(
    _ entries: [(key: ExactString, value: SettingValue)]
  ) -> [(key: ExactString, value: SettingValue)] {
    var bytes: [UInt8] = []
    var places: [Place] = []
    places.reserveCapacity(entries.count)
    for (index, entry) in entries.enumerated() {
      let start = bytes.count
      bytes += entry.key.utf8
      places.append(Place(start: start, end: bytes.count, entry: index))
    }
    places.sort { precedes($0, $1, bytes.span) }
    return places.map { entries[$0.entry] }
  }

  private static func precedes(_ left: Place, _ right: Place, _ bytes: Span<UInt8>) -> Bool {
    var (first, second) = (left.start, right.start)
    while first < left.end, second < right.end {
      if bytes[first] != bytes[second] { return bytes[first] < bytes[second] }
      first += 1
      second += 1
    }
    return second < right.end
  }
}
