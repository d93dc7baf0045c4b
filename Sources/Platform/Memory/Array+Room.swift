extension Array {
  /// A copy with no room for more elements, for an array that is kept. A copy of a slice of the whole array would be the array itself.
  package var withoutRoom: [Element] {
    var copy: [Element] = []
    copy.reserveCapacity(count)
    copy.append(contentsOf: self)
    return copy
  }
}
