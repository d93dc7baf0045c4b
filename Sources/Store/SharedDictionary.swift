public import Model

/// A dictionary whose copies share all but what was changed in one of them.
///
/// A suite is stored, shown and told of as a whole at every commit, mostly for one key among thousands. The
/// entries are spread over parts that never change: to change an entry replaces its part only, and what differs
/// between two copies is found by looking at the parts that are not the same object.
public struct SharedDictionary<Value: Sendable>: Sendable {
  fileprivate final class Part: Sendable {
    let entries: [ExactString: Value]

    init(_ entries: [ExactString: Value]) {
      self.entries = entries
    }
  }

  fileprivate var parts: [Part?]
  public private(set) var count = 0

  public init() {
    parts = Array(repeating: nil, count: partCount)
  }

  public init(_ entries: [ExactString: Value]) {
    self.init(uniqueKeysWithValues: entries.lazy.map { ($0.key, $0.value) })
  }

  public init(uniqueKeysWithValues entries: some Sequence<(ExactString, Value)>) {
    var spread = [[(ExactString, Value)]](repeating: [], count: partCount)
    for entry in entries { spread[partIndex(of: entry.0)].append(entry) }
    // Each part is made at once, with the room it needs.
    parts = spread.map { $0.isEmpty ? nil : Part(Dictionary($0) { $1 }) }
    count = parts.reduce(0) { $0 + ($1?.entries.count ?? 0) }
  }

  private init(parts: [Part?], count: Int) {
    self.parts = parts
    self.count = count
  }

  public var isEmpty: Bool { count == 0 }

  public var keys: [ExactString] { map(\.key) }

  public var values: [Value] { map(\.value) }

  /// The same entries, sharing nothing.
  public var dictionary: [ExactString: Value] {
    Dictionary(uniqueKeysWithValues: lazy.map { ($0.key, $0.value) })
  }

  public subscript(key: ExactString) -> Value? {
    get { parts[partIndex(of: key)]?.entries[key] }
    set {
      let index = partIndex(of: key)
      var entries = parts[index]?.entries ?? [:]
      count -= entries.count
      entries[key] = newValue
      count += entries.count
      parts[index] = entries.isEmpty ? nil : Part(entries)
    }
  }

  @discardableResult
  public mutating func removeValue(forKey key: ExactString) -> Value? {
    guard let value = self[key] else { return nil }
    self[key] = nil
    return value
  }

  public func mapValues<Other>(_ transform: (Value) throws -> Other) rethrows -> SharedDictionary<Other> {
    let parts = try parts.map { part in
      try part.map { SharedDictionary<Other>.Part(try $0.entries.mapValues(transform)) }
    }
    return SharedDictionary<Other>(parts: parts, count: count)
  }
}

extension SharedDictionary {
  /// An entry that two dictionaries do not have in common.
  public struct Difference {
    public let key: ExactString
    /// nil: the other dictionary has no such key.
    public let before: Value?
    /// nil: this dictionary has no such key.
    public let after: Value?
  }

  /// What makes this dictionary differ from `other`, in no particular order.
  public func differences(
    from other: SharedDictionary, by areEqual: (Value, Value) -> Bool
  ) -> [Difference] {
    zip(other.parts, parts).flatMap { (before, after) -> [Difference] in
      guard before !== after else { return [] }
      return Self.differences(before?.entries ?? [:], after?.entries ?? [:], areEqual)
    }
  }

  private static func differences(
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
  public func differences(from other: SharedDictionary) -> [Difference] {
    differences(from: other, by: ==)
  }
}

extension SharedDictionary: Equatable where Value: Equatable {
  public static func == (left: SharedDictionary, right: SharedDictionary) -> Bool {
    left.count == right.count && left.differences(from: right).isEmpty
  }
}

extension SharedDictionary: Sequence {
  public struct Iterator: IteratorProtocol {
    fileprivate var parts: Array<Part?>.Iterator
    fileprivate var entries: Dictionary<ExactString, Value>.Iterator?

    public mutating func next() -> (key: ExactString, value: Value)? {
      while true {
        if let entry = entries?.next() { return entry }
        guard let part = parts.next() else { return nil }
        entries = part?.entries.makeIterator()
      }
    }
  }

  public func makeIterator() -> Iterator {
    Iterator(parts: parts.makeIterator(), entries: nil)
  }

  public var underestimatedCount: Int { count }
}

extension SharedDictionary: ExpressibleByDictionaryLiteral {
  public init(dictionaryLiteral elements: (ExactString, Value)...) {
    self.init(uniqueKeysWithValues: elements)
  }
}

/// Enough that a part of 10,000 entries is small, few enough that a suite of three keys is.
private let partCount = 1 << partBits
private let partBits = 8

/// By the upper bits of the hash: the dictionaries in the parts go by the lower ones.
private func partIndex(of key: ExactString) -> Int {
  Int(UInt(bitPattern: key.hashValue) >> UInt(UInt.bitWidth - partBits))
}
