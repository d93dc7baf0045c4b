package import SecretMemory

/// The search of Aho and Corasick (1975) for many patterns at once, in locked memory: the patterns can be read from it.
package final class PatternAutomaton: Sendable {
  private let table: SecretBytes
  /// The length of the longest pattern, in bytes.
  package let longest: Int

  fileprivate init(_ table: consuming SecretBytes, longest: Int) {
    self.table = table
    self.longest = longest
  }

  /// The position in the search, after the text so far.
  struct State {
    fileprivate var node: UInt32 = 0
    /// The length of the longest end of the text that is the beginning of a pattern.
    fileprivate(set) var depth = 0
    /// The length of the longest pattern that the text ends with; 0: it ends with none.
    fileprivate(set) var match = 0
  }

  /// The state after one byte more.
  func next(_ state: State, _ byte: UInt8) -> State {
    unsafe table.withUnsafeBytes { bytes in
      let nodes = unsafe Nodes(bytes)
      var node = state.node
      while true {
        let child = nodes.child(of: node, byte)
        if child != 0 || node == 0 {
          let found = nodes[child]
          return State(node: child, depth: Int(found.depth), match: Int(found.match))
        }
        node = nodes[node].fail
      }
    }
  }
}

extension PatternAutomaton {
  /// Takes patterns before the search begins.
  package struct Builder: ~Copyable {
    private var table: SecretBytes
    private var count = 1
    private var longest = 0

    package init() throws(SecretMemoryError) { table = try SecretBytes(count: Nodes.size(of: 64)) }

    /// Whether there is no pattern.
    package var isEmpty: Bool { longest == 0 }

    /// Adds a pattern. - Throws: `exhausted`: there is no more locked memory.
    package mutating func add(_ pattern: Span<UInt8>) throws(SecretMemoryError) {
      guard !pattern.isEmpty else { return }
      let needed = Nodes.size(of: count + pattern.count)
      if needed > table.count { try table.resize(to: max(needed, table.count * 3 / 2)) }
      longest = max(longest, pattern.count)
      count = unsafe table.withUnsafeMutableBytes { bytes in
        unsafe Self.insert(pattern, MutableNodes(bytes), count)
      }
    }

    private static func insert(_ pattern: Span<UInt8>, _ nodes: MutableNodes, _ count: Int) -> Int {
      var (node, count): (UInt32, Int) = (0, count)
      for index in pattern.indices {
        var child = nodes.readable.child(of: node, pattern[index])
        if child == 0 {
          child = UInt32(clamping: count)
          nodes.add(child, to: node, pattern[index])
          count += 1
        }
        node = child
      }
      nodes.change(node) { $0.match = $0.depth }
      return count
    }

    /// The search for the patterns that were added.
    package consuming func finish() -> PatternAutomaton {
      unsafe table.withUnsafeMutableBytes { bytes in unsafe Self.link(MutableNodes(bytes)) }
      return PatternAutomaton(table, longest: longest)
    }

    /// Sets for each node the one of its longest end that is a node too, the nodes nearest to the root first.
    private static func link(_ nodes: MutableNodes) {
      var waiting = nodes.readable.childrenOfRoot
      var next = 0
      while next < waiting.count {
        let node = waiting[next]
        next += 1
        var child = nodes.readable[node].child
        while child != 0 {
          let found = nodes.readable[child]
          let fail = end(of: found.byte, after: nodes.readable[node].fail, nodes.readable)
          let match = found.match == 0 ? nodes.readable[fail].match : found.match
          nodes.change(child) { ($0.fail, $0.match) = (fail, match) }
          waiting.append(child)
          child = found.sibling
        }
      }
    }

    private static func end(
      of byte: UInt32, after first: UInt32, _ nodes: Nodes
    ) -> UInt32 {
      var node = first
      while true {
        let child = nodes.child(of: node, UInt8(truncatingIfNeeded: byte))
        if child != 0 || node == 0 { return child }
        node = nodes[node].fail
      }
    }
  }
}

/// One node: the end of a beginning of a pattern. 0 is the root, and no node where one is optional.
private struct PatternNode {
  var child: UInt32 = 0
  var sibling: UInt32 = 0
  var fail: UInt32 = 0
  var match: UInt32 = 0
  var depth: UInt32 = 0
  var byte: UInt32 = 0
}

/// The nodes in a block: first the root's children by their bytes, then all nodes.
///
/// SAFETY: the numbers in nodes are those of nodes; it is used only while the block is lent.
@safe private struct Nodes {
  private let root: UnsafePointer<UInt32>
  private let nodes: UnsafePointer<PatternNode>

  static let rootSize = 256 * MemoryLayout<UInt32>.size

  static func size(of count: Int) -> Int { rootSize + count * MemoryLayout<PatternNode>.stride }

  init(_ bytes: UnsafeRawBufferPointer) {
    let start = unsafe bytes.baseAddress.unsafelyUnwrapped
    unsafe root = start.assumingMemoryBound(to: UInt32.self)
    unsafe nodes = (start + Self.rootSize).assumingMemoryBound(to: PatternNode.self)
  }

  subscript(node: UInt32) -> PatternNode { unsafe nodes[Int(node)] }

  var childrenOfRoot: [UInt32] { (0..<256).map { unsafe root[$0] }.filter { $0 != 0 } }

  func child(of node: UInt32, _ byte: UInt8) -> UInt32 {
    if node == 0 { return unsafe root[Int(byte)] }
    var child = unsafe nodes[Int(node)].child
    while child != 0, unsafe nodes[Int(child)].byte != UInt32(byte) {
      child = unsafe nodes[Int(child)].sibling
    }
    return child
  }
}

/// The same for changing.
@safe private struct MutableNodes {
  private let bytes: UnsafeMutableRawBufferPointer

  init(_ bytes: UnsafeMutableRawBufferPointer) { unsafe self.bytes = bytes }

  var readable: Nodes { unsafe Nodes(UnsafeRawBufferPointer(bytes)) }

  func change(_ node: UInt32, _ body: (inout PatternNode) -> Void) {
    let offset = Nodes.size(of: Int(node))
    var changed = unsafe bytes.load(fromByteOffset: offset, as: PatternNode.self)
    body(&changed)
    unsafe bytes.storeBytes(of: changed, toByteOffset: offset, as: PatternNode.self)
  }

  func add(_ child: UInt32, to node: UInt32, _ byte: UInt8) {
    let parent = readable[node]
    let isChildOfRoot = node == 0
    change(child) { new in
      new = PatternNode(
        sibling: isChildOfRoot ? 0 : parent.child, depth: parent.depth &+ 1, byte: UInt32(byte))
    }
    guard !isChildOfRoot else {
      return unsafe bytes.storeBytes(
        of: child, toByteOffset: Int(byte) * MemoryLayout<UInt32>.size, as: UInt32.self)
    }
    change(node) { $0.child = child }
  }
}
