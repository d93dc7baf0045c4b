public import Model

/// A dictionary whose copies share all but what was changed in one of them.
///
/// A suite is stored, shown and told of as a whole at every commit, mostly for one key among thousands. The
/// entries are spread over parts that never change: to change an entry replaces its part only, and what differs
/// between two copies is found by looking at the parts that are not the same object.
///
/// Inlinable, because engines are modules of their own: unspecialized, a comparison takes a hundred times as long.
public struct SharedDictionary<Value: Sendable>: Sendable {
  @usableFromInline final class Part: Sendable {
    @usableFromInline let entries: [ExactString: Value]

    @inlinable init(_ entries: [ExactString: Value]) {
      self.entries = entries
    }
  }

  @usableFromInline var parts: [Part?]
  @usableFromInline var size = 0

  /// The number of entries, in constant time.
  @inlinable public var count: Int { size }

  /// An empty dictionary.
  @inlinable public init() {
    parts = Array(repeating: nil, count: partCount)
  }

  /// Copies the entries, sharing nothing.
  @inlinable public init(_ entries: [ExactString: Value]) {
    self.init(uniqueKeysWithValues: entries.lazy.map { ($0.key, $0.value) })
  }

  /// Of entries with one key the last stays.
  @inlinable public init(uniqueKeysWithValues entries: some Sequence<(ExactString, Value)>) {
    var spread = [[(ExactString, Value)]](repeating: [], count: partCount)
    for entry in entries { spread[partIndex(of: entry.0)].append(entry) }
    // Each part is made at once, with the room it needs.
    parts = spread.map { $0.isEmpty ? nil : Part(Dictionary($0) { $1 }) }
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
    get { parts[partIndex(of: key)]?.entries[key] }
    set {
      let index = partIndex(of: key)
      var entries = parts[index]?.entries ?? [:]
      size -= entries.count
      entries[key] = newValue
      size += entries.count
      parts[index] = entries.isEmpty ? nil : Part(entries)
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
      try part.map { SharedDictionary<Other>.Part(try $0.entries.mapValues(transform)) }
    }
    return SharedDictionary<Other>(parts: parts, count: count)
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
    var differences: [Difference] = []
    for (before, after) in zip(other.parts, parts) where before !== after {
      differences += Self.differences(before?.entries ?? [:], after?.entries ?? [:], areEqual)
    }
    return differences
  }

  @inlinable static func differences(
    _ before: [ExactString: Value], _ after: [ExactString: Value], _ areEqual: (Value, Value) -> Bool
  ) -> [Difference] {
    var differences = before.compactMap { key, value in
      after[key] == nil ? Difference(key: key, before: value, after: nil) : nil
    }
    for (key, value) in after {
      let old = before[key]
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
    @usableFromInline var entries: Dictionary<ExactString, Value>.Iterator?

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

/// Enough that a part of 10,000 entries is small, few enough that a suite of three keys is.
@inlinable var partCount: Int { 1 << partBits }
@inlinable var partBits: Int { 8 }

/// By the upper bits of the hash: the dictionaries in the parts go by the lower ones.
@inlinable func partIndex(of key: ExactString) -> Int {
  Int(UInt(bitPattern: key.hashValue) >> UInt(UInt.bitWidth - partBits))
}
