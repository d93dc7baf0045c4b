public import Model

/// A dictionary whose copies share all but what was changed in one of them.
///
/// A suite is stored, shown and told of as a whole at every commit, mostly for one key among thousands. The
/// entries are spread over parts that never change: to change an entry replaces its part only, and what differs
/// between two copies is found by looking at the parts that are not the same object.
///
/// Inlinable, because engines are modules of their own: unspecialized, a comparison takes a hundred times as long.
public struct SharedDictionary<Value: Sendable>: Sendable {
  /// Entries in a row, without gaps, and a table of where they are: as few bytes as a key and its value, and 4 to 11 more.
  @usableFromInline final class Part: Sendable {
    @usableFromInline let entries: [(key: ExactString, value: Value)]
    /// A power of two of slots: 1 more than where the entry with that hash is, or the next free slot behind it (linear
    /// probing); 0: none.
    @usableFromInline let slots: [UInt32]

    @inlinable init(_ entries: [(key: ExactString, value: Value)], _ slots: [UInt32]) {
      (self.entries, self.slots) = (entries, slots)
    }
  }

  /// 1, 4, 16, 64 or 256.
  @usableFromInline var parts: [Part?]
  @usableFromInline var size = 0

  /// The number of entries, in constant time.
  @inlinable public var count: Int { size }

  /// An empty dictionary.
  @inlinable public init() {
    parts = [nil]
  }

  /// Copies the entries, sharing nothing.
  @inlinable public init(_ entries: [ExactString: Value]) {
    self.init(uniqueKeysWithValues: entries.lazy.map { ($0.key, $0.value) })
  }

  /// Of entries with one key the last stays.
  @inlinable public init(uniqueKeysWithValues entries: some Sequence<(ExactString, Value)>) {
    let entries = Array(entries)
    self.init(parts: Array(repeating: nil, count: partCount(for: entries.count)), count: 0)
    var spread = [[(key: ExactString, value: Value)]](repeating: [], count: parts.count)
    for entry in entries { spread[partIndex(of: entry.0.hashValue)].append(entry) }
    // Each part is made at once, with the room it needs.
    parts = spread.map { $0.isEmpty ? nil : Part(joining: $0) }
    size = parts.reduce(0) { $0 + ($1?.entries.count ?? 0) }
  }

  @inlinable init(parts: [Part?], count: Int) {
    self.parts = parts
    size = count
  }

  /// Whether there is no entry.
  @inlinable public var isEmpty: Bool { count == 0 }

  /// The keys, in no particular order.
  @inlinable public var keys: [ExactString] { map(\.key) }

  /// The values, in the order of `keys`.
  @inlinable public var values: [Value] { map(\.value) }

  /// The same entries, sharing nothing.
  @inlinable public var dictionary: [ExactString: Value] {
    Dictionary(uniqueKeysWithValues: lazy.map { ($0.key, $0.value) })
  }

  /// The value of a key; setting nil removes it. A change copies one part of the entries and shares the others.
  @inlinable public subscript(key: ExactString) -> Value? {
    get {
      let hash = key.hashValue
      return parts[partIndex(of: hash)]?.value(of: key, hash)
    }
    set {
      let hash = key.hashValue
      let index = partIndex(of: hash)
      let part = parts[index]
      let next: Part?
      if let newValue {
        next = (part ?? Part([], [])).setting(key, hash, to: newValue)
      } else {
        next = part?.removing(key, hash)
      }
      size &+= (next?.entries.count ?? 0) &- (part?.entries.count ?? 0)
      parts[index] = next
      if partCount(for: size) > parts.count { self = Self(uniqueKeysWithValues: map { ($0.key, $0.value) }) }
    }
  }

  @discardableResult @inlinable
  /// Removes a key. Returns its value; nil: there was none, and nothing is copied.
  public mutating func removeValue(forKey key: ExactString) -> Value? {
    guard let value = self[key] else { return nil }
    self[key] = nil
    return value
  }

  /// A dictionary of the same keys with other values, which shares nothing.
  @inlinable public func mapValues<Other>(_ transform: (Value) throws -> Other) rethrows -> SharedDictionary<
    Other
  > {
    let parts = try parts.map { part in
      try part.map { part in
        SharedDictionary<Other>.Part(
          try part.entries.map { (key: $0.key, value: try transform($0.value)) }, part.slots)
      }
    }
    return SharedDictionary<Other>(parts: parts, count: count)
  }

  /// By the upper bits of the hash: the tables in the parts go by the lower ones.
  @inlinable func partIndex(of hash: Int) -> Int {
    Int(UInt(bitPattern: hash) >> UInt(UInt.bitWidth - parts.count.trailingZeroBitCount))
  }
}

extension SharedDictionary.Part {
  /// Of entries with one key the last stays.
  @inlinable convenience init(joining entries: [(key: ExactString, value: Value)]) {
    var slots = [UInt32](repeating: 0, count: slotCount(for: entries.count))
    var joined: [(key: ExactString, value: Value)] = []
    joined.reserveCapacity(entries.count)
    for entry in entries {
      let hash = entry.key.hashValue
      let slot = Self.slot(of: entry.key, hash, in: slots, joined)
      guard slots[slot] == 0 else {
        joined[Int(slots[slot]) - 1] = entry
        continue
      }
      joined.append(entry)
      slots[slot] = UInt32(clamping: joined.count)
    }
    self.init(joined, slots)
  }

  /// The slot that has the key, or the free one where it would be.
  @inlinable static func slot(
    of key: ExactString, _ hash: Int, in slots: [UInt32], _ entries: [(key: ExactString, value: Value)]
  ) -> Int {
    var slot = hash & (slots.count - 1)
    while slots[slot] != 0, entries[Int(slots[slot]) - 1].key != key { slot = (slot + 1) & (slots.count - 1) }
    return slot
  }

  @inlinable func value(of key: ExactString, _ hash: Int) -> Value? {
    let found = slots[Self.slot(of: key, hash, in: slots, entries)]
    return found == 0 ? nil : entries[Int(found) - 1].value
  }

  @inlinable func setting(_ key: ExactString, _ hash: Int, to value: Value) -> SharedDictionary.Part {
    guard !entries.isEmpty else { return SharedDictionary.Part(joining: [(key, value)]) }
    let slot = Self.slot(of: key, hash, in: slots, entries)
    var (slots, next) = (slots, [(key: ExactString, value: Value)]())
    let isNew = slots[slot] == 0
    next.reserveCapacity(entries.count + (isNew ? 1 : 0))
    next += entries
    guard isNew else {
      next[Int(slots[slot]) - 1].value = value
      return SharedDictionary.Part(next, slots)
    }
    next.append((key, value))
    guard slotCount(for: next.count) == slots.count else { return SharedDictionary.Part(joining: next) }
    slots[slot] = UInt32(clamping: next.count)
    return SharedDictionary.Part(next, slots)
  }

  /// nil: there are no others.
  @inlinable func removing(_ key: ExactString, _ hash: Int) -> SharedDictionary.Part? {
    let slot = Self.slot(of: key, hash, in: slots, entries)
    guard slots[slot] != 0 else { return self }
    guard entries.count > 1 else { return nil }
    var (slots, next) = (slots, entries)
    // The last entry takes the place of the one that goes.
    let (gone, last) = (Int(slots[slot]) - 1, next.count - 1)
    let slotOfLast = Self.slot(of: next[last].key, next[last].key.hashValue, in: slots, next)
    slots[slotOfLast] = slots[slot]
    next.swapAt(gone, last)
    _ = next.popLast()
    Self.close(slot, in: &slots, next)
    return SharedDictionary.Part(next, slots)
  }

  /// The slots behind a gap move up, as far as their own place lets them.
  @inlinable static func close(
    _ gap: Int, in slots: inout [UInt32], _ entries: [(key: ExactString, value: Value)]
  ) {
    let mask = slots.count - 1
    var (gap, next) = (gap, (gap + 1) & mask)
    slots[gap] = 0
    while slots[next] != 0 {
      let distance = (next - entries[Int(slots[next]) - 1].key.hashValue) & mask
      if distance >= (next - gap) & mask {
        (slots[gap], slots[next]) = (slots[next], 0)
        gap = next
      }
      next = (next + 1) & mask
    }
  }
}

extension SharedDictionary {
  /// An entry that two dictionaries do not have in common.
  public struct Difference {
    /// The key that only one has, or that has another value in each.
    public let key: ExactString
    /// nil: the other dictionary has no such key.
    public let before: Value?
    /// nil: this dictionary has no such key.
    public let after: Value?

    @inlinable init(key: ExactString, before: Value?, after: Value?) {
      (self.key, self.before, self.after) = (key, before, after)
    }
  }

  /// The differences of this dictionary from `other`, in no particular order.
  @inlinable public func differences(
    from other: SharedDictionary, by areEqual: (Value, Value) -> Bool
  ) -> [Difference] {
    guard parts.count == other.parts.count else {
      return Self.differences(other, self, { other[$0] }, { self[$0] }, areEqual)
    }
    var differences: [Difference] = []
    for (before, after) in zip(other.parts, parts) where before !== after {
      Self.add(to: &differences, before, after, areEqual)
    }
    return differences
  }

  /// Compares the entries in a row: nearly all are at the same place in both parts, where no hash is needed to find them.
  @inlinable static func add(
    to differences: inout [Difference], _ before: Part?, _ after: Part?, _ areEqual: (Value, Value) -> Bool
  ) {
    let (countBefore, countAfter) = (before?.entries.count ?? 0, after?.entries.count ?? 0)
    for index in 0..<Swift.max(countBefore, countAfter) {
      let old = index < countBefore ? before?.entries[index] : nil
      let new = index < countAfter ? after?.entries[index] : nil
      if let old, let new, old.key == new.key {
        if !areEqual(old.value, new.value) {
          differences.append(Difference(key: new.key, before: old.value, after: new.value))
        }
        continue
      }
      if let old, after?.value(of: old.key, old.key.hashValue) == nil {
        differences.append(Difference(key: old.key, before: old.value, after: nil))
      }
      guard let new else { continue }
      let value = before?.value(of: new.key, new.key.hashValue)
      if let value, areEqual(value, new.value) { continue }
      differences.append(Difference(key: new.key, before: value, after: new.value))
    }
  }

  @inlinable static func differences(
    _ before: some Sequence<(key: ExactString, value: Value)>,
    _ after: some Sequence<(key: ExactString, value: Value)>,
    _ valueBefore: (ExactString) -> Value?, _ valueAfter: (ExactString) -> Value?,
    _ areEqual: (Value, Value) -> Bool
  ) -> [Difference] {
    var differences = before.compactMap { key, value in
      valueAfter(key) == nil ? Difference(key: key, before: value, after: nil) : nil
    }
    for (key, value) in after {
      let old = valueBefore(key)
      if let old, areEqual(old, value) { continue }
      differences.append(Difference(key: key, before: old, after: value))
    }
    return differences
  }
}

extension SharedDictionary where Value: Equatable {
  /// As `differences(from:by:)`, by the values' own `==`.
  @inlinable public func differences(from other: SharedDictionary) -> [Difference] {
    differences(from: other, by: ==)
  }
}

extension SharedDictionary: Equatable where Value: Equatable {
  /// Equal keys and values; parts that both share are not looked at.
  @inlinable public static func == (left: SharedDictionary, right: SharedDictionary) -> Bool {
    left.count == right.count && left.differences(from: right).isEmpty
  }
}

extension SharedDictionary: Sequence {
  /// Goes over the entries part by part.
  public struct Iterator: IteratorProtocol {
    @usableFromInline var parts: Array<Part?>.Iterator
    @usableFromInline var entries: Array<(key: ExactString, value: Value)>.Iterator?

    @inlinable init(parts: Array<Part?>.Iterator) {
      self.parts = parts
    }

    /// The next entry; nil: there are no more.
    @inlinable public mutating func next() -> (key: ExactString, value: Value)? {
      while true {
        if let entry = entries?.next() { return entry }
        guard let part = parts.next() else { return nil }
        entries = part?.entries.makeIterator()
      }
    }
  }

  /// The entries of this moment, in no particular order; later changes of the dictionary don't show.
  @inlinable public func makeIterator() -> Iterator {
    Iterator(parts: parts.makeIterator())
  }

  /// The number of entries, exactly.
  @inlinable public var underestimatedCount: Int { count }
}

extension SharedDictionary: ExpressibleByDictionaryLiteral {
  /// Of entries with one key the last stays.
  @inlinable public init(dictionaryLiteral elements: (ExactString, Value)...) {
    self.init(uniqueKeysWithValues: elements)
  }
}

/// Parts have up to 64 entries, and many more only of a large suite: to copy one takes less than a microsecond, and each takes some 190 bytes beside its
/// entries.
@inlinable func partCount(for count: Int) -> Int {
  var parts = 1
  while parts < 256, count > parts * 64 { parts *= 4 }
  return parts
}

/// A power of two, of which at most three quarters are taken.
@inlinable func slotCount(for count: Int) -> Int {
  var slots = 4
  while slots * 3 < count * 4 { slots *= 2 }
  return slots
}
