/// The numbers of places by hashes, in eight bytes each: a hash table without the keys, which are compared where the places
/// are (open addressing with linear probing: Knuth, The Art of Computer Programming, 6.4).
struct SlotTable {
  private struct Entry {
    var hash: UInt32
    /// 0: none.
    var slot: UInt32
  }

  private var entries: [Entry] = []
  private(set) var count = 0

  private var mask: Int { entries.count &- 1 }

  /// The first slot of a hash that `isRight`; nil: none.
  func first(_ hash: UInt32, where isRight: (Int) -> Bool) -> Int? {
    var found: Int?
    visit(hash) { slot in
      guard isRight(slot) else { return true }
      found = slot
      return false
    }
    return found
  }

  func all(_ hash: UInt32, where isRight: (Int) -> Bool) -> [Int] {
    var found: [Int] = []
    visit(hash) { slot in
      if isRight(slot) { found.append(slot) }
      return true
    }
    return found
  }

  /// Calls `body` with each slot of the hash until it returns false.
  private func visit(_ hash: UInt32, _ body: (Int) -> Bool) {
    guard !entries.isEmpty else { return }
    var place = Int(hash) & mask
    while entries[place].slot != 0 {
      if entries[place].hash == hash, !body(Int(entries[place].slot) &- 1) { return }
      place = (place &+ 1) & mask
    }
  }

  /// `slot` is below 2³² − 1.
  mutating func insert(_ slot: Int, _ hash: UInt32) {
    // At most three quarters are taken.
    if (count &+ 1) &* 4 > entries.count &* 3 { grow() }
    put(Entry(hash: hash, slot: UInt32(truncatingIfNeeded: slot &+ 1)))
    count &+= 1
  }

  private mutating func put(_ entry: Entry) {
    var place = Int(entry.hash) & mask
    while entries[place].slot != 0 { place = (place &+ 1) & mask }
    entries[place] = entry
  }

  private mutating func grow() {
    let old = entries
    entries = Array(repeating: Entry(hash: 0, slot: 0), count: max(8, old.count &* 2))
    for entry in old where entry.slot != 0 { put(entry) }
  }

  /// Another slot in the place of one.
  mutating func replace(_ slot: Int, by new: Int, _ hash: UInt32) {
    guard let place = place(of: slot, hash) else { return }
    entries[place].slot = UInt32(truncatingIfNeeded: new &+ 1)
  }

  private func place(of slot: Int, _ hash: UInt32) -> Int? {
    guard !entries.isEmpty else { return nil }
    var place = Int(hash) & mask
    while entries[place].slot != 0 {
      if Int(entries[place].slot) &- 1 == slot { return place }
      place = (place &+ 1) & mask
    }
    return nil
  }

  mutating func remove(_ slot: Int, _ hash: UInt32) {
    guard var place = place(of: slot, hash) else { return }
    count &-= 1
    // Those behind it move up, as far as their own place lets them.
    var next = (place &+ 1) & mask
    while entries[next].slot != 0 {
      let distance = (next &- Int(entries[next].hash)) & mask
      if distance >= (next &- place) & mask {
        entries[place] = entries[next]
        place = next
      }
      next = (next &+ 1) & mask
    }
    entries[place] = Entry(hash: 0, slot: 0)
  }
}

/// The slots of a folder's items: most folders have one.
enum FolderSlots {
  case none
  case one(UInt32)
  case several([UInt32])

  var slots: [UInt32] {
    switch self {
    case .none: []
    case .one(let slot): [slot]
    case .several(let slots): slots
    }
  }

  var count: Int {
    switch self {
    case .none: 0
    case .one: 1
    case .several(let slots): slots.count
    }
  }

  /// - Returns: the place of the slot.
  mutating func append(_ slot: Int) -> UInt32 {
    let new = UInt32(truncatingIfNeeded: slot)
    switch self {
    case .none:
      self = .one(new)
      return 0
    case .one(let first):
      self = .several([first, new])
      return 1
    case .several(var slots):
      self = .none
      slots.append(new)
      let place = UInt32(truncatingIfNeeded: slots.count &- 1)
      self = .several(slots)
      return place
    }
  }

  /// - Returns: the slot that takes the place.
  mutating func remove(at place: UInt32) -> UInt32? {
    guard case .several(var slots) = self else {
      self = .none
      return nil
    }
    self = .none
    guard let last = slots.popLast() else { return nil }
    let isLast = Int(place) == slots.count
    if !isLast { slots[Int(place)] = last }
    self = .several(slots)
    return isLast ? nil : last
  }

  mutating func replace(at place: UInt32, by slot: Int) {
    let new = UInt32(truncatingIfNeeded: slot)
    guard case .several(var slots) = self else {
      self = .one(new)
      return
    }
    self = .none
    slots[Int(place)] = new
    self = .several(slots)
  }
}
