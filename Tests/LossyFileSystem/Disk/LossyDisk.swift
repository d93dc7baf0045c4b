/// A disk of which only what was synchronised is sure to outlive a power loss.
///
/// It is a value: a copy is the disk at one moment, with all that is not durable yet, and can be cut, or used
/// on, while another thread works on the original. As strict as POSIX allows: fsync(2) of a file does
/// nothing for its name, fsync of a folder nothing for its files' bytes or its own name. One rename within a
/// folder is one change; a rename between folders is two. Modes, owners and times are not lost.
package struct LossyDisk: Sendable {
  package typealias Name = [UInt8]

  struct Node: Sendable {
    var mode: UInt32
    var owner: UInt32
    var group: UInt32
    var modified: Moment
    /// nil: a folder.
    var file: LossyFile?
    var names: [Name: UInt64] = [:]
    fileprivate var durableNames: [Name: UInt64] = [:]
    fileprivate var changes: [NameChange] = []

    init(mode: UInt32, owner: UInt32, group: UInt32, modified: Moment, file: LossyFile? = nil) {
      self.mode = mode
      self.owner = owner
      self.group = group
      self.modified = modified
      self.file = file
    }
  }

  struct Moment: Sendable {
    var seconds: Int
    var nanoseconds: Int
  }

  /// The change of a folder's names by one call; nil: the name is gone.
  struct NameChange: Sendable {
    let names: [(name: Name, node: UInt64?)]
  }

  static let root: UInt64 = 1
  private(set) var nodes: [UInt64: Node] = [:]
  private var lastNode = root

  /// An empty disk with its top folder.
  package init(owner: UInt32, group: UInt32) {
    nodes[Self.root] = Node(
      mode: 0o700, owner: owner, group: group, modified: Moment(seconds: 0, nanoseconds: 0))
  }
}

// MARK: - What the kernel asks for

extension LossyDisk {
  subscript(node: UInt64) -> Node? {
    _read { yield nodes[node] }
    _modify { yield &nodes[node] }
  }

  func find(_ name: Name, in folder: UInt64) -> UInt64? {
    nodes[folder]?.names[name]
  }

  func links(to node: UInt64) -> Int {
    nodes[node]?.file == nil ? 2 : nodes.values.reduce(0) { $0 + $1.names.values.count { $0 == node } }
  }

  /// Makes a file or a folder.
  mutating func make(_ name: Name, in folder: UInt64, _ node: Node) -> UInt64 {
    lastNode += 1
    nodes[lastNode] = node
    change(folder, [(name, lastNode)])
    return lastNode
  }

  mutating func link(_ node: UInt64, _ name: Name, in folder: UInt64) {
    change(folder, [(name, node)])
  }

  mutating func unlink(_ name: Name, in folder: UInt64) {
    change(folder, [(name, nil)])
  }

  mutating func rename(_ name: Name, in folder: UInt64, to newName: Name, in newFolder: UInt64) {
    guard let node = find(name, in: folder) else { return }
    // Two names of one file: rename(2) does nothing then.
    guard find(newName, in: newFolder) != node else { return }
    if folder == newFolder { return change(folder, [(name, nil), (newName, node)]) }
    change(newFolder, [(newName, node)])
    change(folder, [(name, nil)])
  }

  /// An exchange of two names is one change.
  mutating func exchange(_ name: Name, _ other: Name, in folder: UInt64) {
    change(folder, [(name, find(other, in: folder)), (other, find(name, in: folder))])
  }

  /// fsync(2) of a file or a folder.
  mutating func synchronize(_ node: UInt64) {
    nodes[node]?.file?.synchronize()
    guard let names = nodes[node]?.names else { return }
    nodes[node]?.durableNames = names
    nodes[node]?.changes = []
  }

  private mutating func change(_ folder: UInt64, _ names: [(name: Name, node: UInt64?)]) {
    for (name, node) in names { nodes[folder]?.names[name] = node }
    nodes[folder]?.changes.append(NameChange(names: names))
  }
}

// MARK: - Power loss

extension LossyDisk {
  /// The disk as it is found after a power loss.
  package func survivor(_ survival: Survival) -> LossyDisk {
    var fate = Fate(survival)
    var disk = self
    for (number, node) in nodes.sorted(by: { $0.key < $1.key }) {
      disk.nodes[number] = node.survivor(&fate)
    }
    return disk
  }
}

extension LossyDisk.Node {
  fileprivate func survivor(_ fate: inout Fate) -> Self {
    var node = self
    node.file = file?.survivor(&fate)
    node.names = durableNames
    for change in changes where fate.keepsName() {
      for (name, number) in change.names { node.names[name] = number }
    }
    node.durableNames = node.names
    node.changes = []
    return node
  }
}
