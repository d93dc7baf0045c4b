/// Nodes by hashes, in twelve bytes each: a hash table without the keys, which are compared in the nodes (open addressing
/// with linear probing: Knuth, The Art of Computer Programming, 6.4).
struct NodeSet: Sendable {
  private static let smallest = 16

  private var hashes: [UInt32]
  private var nodes: [Node?]
  private(set) var count = 0

  init() {
    hashes = Array(repeating: 0, count: Self.smallest)
    nodes = Array(repeating: nil, count: Self.smallest)
  }

  private var mask: Int { nodes.count &- 1 }

  /// Every node, in no particular order.
  var all: [Node] { nodes.compactMap { $0 } }

  /// The node of a hash that `isRight`; nil: none.
  func first(_ hash: UInt32, where isRight: (Node) -> Bool) -> Node? {
    var index = Int(hash) & mask
    while let node = nodes[index] {
      if hashes[index] == hash, isRight(node) { return node }
      index = (index &+ 1) & mask
    }
    return nil
  }

  mutating func insert(_ node: Node, _ hash: UInt32) {
    // At most three quarters are taken.
    if (count &+ 1) &* 4 > nodes.count &* 3 { resize(to: nodes.count &* 2) }
    put(node, hash)
    count &+= 1
  }

  private mutating func put(_ node: Node, _ hash: UInt32) {
    var index = Int(hash) & mask
    while nodes[index] != nil { index = (index &+ 1) & mask }
    (hashes[index], nodes[index]) = (hash, node)
  }

  private mutating func resize(to capacity: Int) {
    let (oldHashes, oldNodes) = (hashes, nodes)
    hashes = Array(repeating: 0, count: capacity)
    nodes = Array(repeating: nil, count: capacity)
    for (node, hash) in zip(oldNodes, oldHashes) {
      if let node { put(node, hash) }
    }
  }

  /// Does nothing where the node is not in it.
  mutating func remove(_ node: Node, _ hash: UInt32) {
    guard let index = index(of: node, hash) else { return }
    nodes[index] = nil
    count &-= 1
    close(index)
    // A quarter of what fits is what a table that has just grown has.
    if nodes.count > Self.smallest, count &* 8 < nodes.count { resize(to: nodes.count / 2) }
  }

  private func index(of node: Node, _ hash: UInt32) -> Int? {
    var index = Int(hash) & mask
    while let found = nodes[index] {
      if found === node { return index }
      index = (index &+ 1) & mask
    }
    return nil
  }

  /// Those behind a gap move up, as far as their own place lets them.
  private mutating func close(_ gap: Int) {
    var (gap, next) = (gap, (gap &+ 1) & mask)
    while let node = nodes[next] {
      let distance = (next &- Int(hashes[next])) & mask
      if distance >= (next &- gap) & mask {
        (nodes[gap], hashes[gap], nodes[next]) = (node, hashes[next], nil)
        gap = next
      }
      next = (next &+ 1) & mask
    }
  }
}
