import Platform
import Synchronization

/// Every node that is known, by number and by place, and the numbers of those that were dropped.
///
/// A file keeps its number while it has its name. So of a node that the kernel has forgotten, only the number is kept, in
/// sixteen bytes, by a hash of its directory's number and its name. The hash is SipHash with a key of this process: that two
/// names of a million have the same one is as likely as 1 in 37 million, and a number that would be found by
/// another's name is kept in its node.
struct NodeTable: Sendable {
  private var byNumber = NumberTable<Node>()
  private var byPlace = NodeSet()
  private var dropped: [UInt64: UInt64] = [:]
  private var last: UInt64 = 1

  init(root: Node) {
    insert(root, at: .root)
  }

  subscript(number: UInt64) -> Node? {
    byNumber[number]
  }

  func known(_ place: Place) -> Node? {
    byPlace.first(Self.hash(place)) { $0.place == place }
  }

  /// Every node, in no particular order.
  var all: [Node] { byNumber.values }

  /// The node at `place`, which is new where it was not asked for yet.
  mutating func node(at place: Place) -> Node {
    if let known = known(place) { return known }
    let node = Node(number: takeNumber(of: place), place: place)
    insert(node, at: place)
    return node
  }

  /// The number of the file at `place`, without a node for it.
  mutating func number(at place: Place) -> UInt64 {
    if let known = known(place) { return known.number }
    guard let name = name(of: place) else { return node(at: place).number }
    if let number = dropped[name] { return number }
    last += 1
    dropped[name] = last
    return last
  }

  /// The name is gone. The number stays for those who hold the node, until `forget`.
  mutating func remove(_ place: Place) {
    if let name = name(of: place) { dropped[name] = nil }
    guard let node = known(place) else { return }
    byPlace.remove(node, Self.hash(place))
    node.state.withLock { $0.isRemoved = true }
  }

  /// The same, unless another node has got the name meanwhile.
  mutating func remove(_ node: Node, at place: Place) {
    if known(place) === node { remove(place) }
  }

  /// Moves the node at `old`, and everything below it, to `new`; what was at `new` is removed.
  mutating func move(_ old: Place, to new: Place) {
    remove(new)
    let affected = old.isDirectory ? byPlace.all : known(old).map { [$0] } ?? []
    for node in affected {
      let place = node.place
      guard let moved = place.moved(from: old, to: new) else { continue }
      byPlace.remove(node, Self.hash(place))
      node.state.withLock { $0.place = moved }
      byPlace.insert(node, Self.hash(moved))
    }
  }

  /// The move is done. A node that was made for the old name while `node` had the new one already is removed.
  mutating func finishMove(of node: Node, from old: Place, to new: Place) {
    if node.place == old { move(old, to: new) } else { remove(old) }
  }
}

// The kernel's references.
extension NodeTable {
  /// Counts a lookup of a node, which may have been dropped since it was found. Returns the node that has its number.
  mutating func countLookup(of node: Node) -> Node {
    let counted = self[node.number] ?? restored(node)
    counted.state.withLock { state in
      state.lookups += 1
      state.isUsed = true
    }
    return counted
  }

  private mutating func restored(_ node: Node) -> Node {
    let place = node.place
    byNumber[node.number] = node
    guard let name = name(of: place), dropped[name] == node.number else {
      // Another file has got its name.
      node.state.withLock { $0.isRemoved = true }
      return node
    }
    dropped[name] = nil
    byPlace.insert(node, Self.hash(place))
    return node
  }

  /// Takes lookups back. A node without lookups is dropped; a file that still has its name keeps the number. Returns whether
  /// none is left.
  mutating func forget(_ number: UInt64, lookups count: UInt64) -> Bool {
    guard let node = self[number], node.place != .root else { return false }
    let isForgotten = node.state.withLock { state in
      state.lookups -= min(count, state.lookups)
      return state.lookups == 0
    }
    if isForgotten { drop(node) }
    return isForgotten
  }

  private mutating func drop(_ node: Node) {
    let (place, isRemoved, isNeeded) = node.state.withLock { ($0.place, $0.isRemoved, $0.isNeeded) }
    if !isRemoved {
      guard !isNeeded, let name = name(of: place), dropped[name] == nil else { return }
      byPlace.remove(node, Self.hash(place))
      dropped[name] = node.number
    }
    byNumber[node.number] = nil
  }
}

// Hashes and numbers.
extension NodeTable {
  private static func hash(_ place: Place) -> UInt32 { UInt32(truncatingIfNeeded: place.hashValue) }

  private mutating func insert(_ node: Node, at place: Place) {
    byNumber[node.number] = node
    byPlace.insert(node, Self.hash(place))
  }

  /// The number that the file at `place` has had, or a new one.
  private mutating func takeNumber(of place: Place) -> UInt64 {
    if !dropped.isEmpty, let name = name(of: place), let number = dropped.removeValue(forKey: name) {
      return number
    }
    last += 1
    return last
  }

  /// The hash by which a number is kept; nil: the directory has no number.
  private func name(of place: Place) -> UInt64? {
    guard let parent = place.parent, let directory = number(of: parent) else { return nil }
    var hasher = Hasher()
    hasher.combine(directory)
    place.combineName(into: &hasher)
    return UInt64(bitPattern: Int64(hasher.finalize()))
  }

  private func number(of place: Place) -> UInt64? {
    known(place)?.number ?? (dropped.isEmpty ? nil : name(of: place).flatMap { dropped[$0] })
  }
}
