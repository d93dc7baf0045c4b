import Model
import Store
import Synchronization

/// One file or directory of the tree, for as long as the kernel knows it: a rename moves it, an unlink
/// leaves it to the open handles.
public final class Node: Sendable {
  /// The file's number (`st_ino`): stable while the tree lives. The root's is 1.
  public let number: UInt64

  struct State {
    var place: Place
    /// The last status that was returned: an unlinked file shows it to its open handles.
    var lastStatus: NodeStatus?
    /// The name is gone; what is still written goes nowhere.
    var isRemoved = false
    /// nil: the file has none of it, as most have, of which there may be many thousands.
    private var rest: Rest?

    init(place: Place) {
      self.place = place
    }

    private final class Rest {
      var accessed: Timestamp?
      var lastAttributes: [String: [UInt8]]?
      var lastEntry: SuiteSnapshot.Entry?
      var writers: [ObjectIdentifier: Handle] = [:]
      var creator: ProcessID?
    }

    private mutating func madeRest() -> Rest {
      if let rest { return rest }
      let new = Rest()
      rest = new
      return new
    }
  }

  let state: Mutex<State>

  init(number: UInt64, place: Place) {
    self.number = number
    state = Mutex(State(place: place))
  }

  var place: Place { state.withLock { $0.place } }

  /// The name is gone; those who have the file open still have it.
  public var isRemoved: Bool { state.withLock { $0.isRemoved } }

  /// The path from the top of the tree, without a leading slash.
  public var path: String { place.path }

  /// Whether it is a directory; else it is a regular file or a symbolic link.
  public var isDirectory: Bool { state.withLock { $0.place.isDirectory } }

  /// Whether the contents must stay out of the kernel's page cache.
  public var isSecret: Bool { state.withLock { $0.place.isSecret } }

  /// Whether it is a directory that no operation removes: the top, `defaults`, `keychain`, its classes, `.keyhole`.
  public var isPermanent: Bool { place.isPermanentDirectory }

  /// Whether it lives in memory only.
  public var isScratch: Bool {
    state.withLock {
      if case .scratch = $0.place { return true }
      return false
    }
  }

  /// Whether it is a one-time code, which is computed.
  public var isCode: Bool {
    state.withLock {
      if case .code = $0.place { return true }
      return false
    }
  }

  /// Whether it is a part of `.keyhole`.
  public var isControl: Bool {
    state.withLock {
      switch $0.place {
      case .status, .events: true
      default: false
      }
    }
  }

  /// Whether only a change that is reported to this process can change its status: it is a key, and no process is writing it.
  public var changesAreReported: Bool {
    state.withLock { state in
      guard case .key = state.place else { return false }
      return !state.isRemoved && state.writers.isEmpty
    }
  }

  /// Attributes of a file whose name is gone; nil: it has its name, or its attributes are not known.
  var keptAttributes: [String: [UInt8]]? {
    state.withLock { $0.isRemoved ? $0.lastAttributes : nil }
  }

  /// Whether it stands in one of the keychain's classes, or is one.
  var isInKeychain: Bool { state.withLock { $0.place.isInKeychain } }

  /// The place, and the attributes as `keptAttributes` has them, both of one moment.
  var placeAndKeptAttributes: (Place, [String: [UInt8]]?) {
    state.withLock { ($0.place, $0.isRemoved ? $0.lastAttributes : nil) }
  }

  /// Whether the file is open for writing, so that its size and times may change at any moment.
  public var isBeingWritten: Bool { state.withLock { !$0.writers.isEmpty } }
}

extension Node.State {
  /// When it was last read, where a program has set that: utimensat(2). It lasts as long as the mount.
  var accessed: Timestamp? {
    get { rest?.accessed }
    set { if newValue != nil || rest != nil { madeRest().accessed = newValue } }
  }

  /// Attributes of a file that was removed, for open files of it; nil: they are not known.
  var lastAttributes: [String: [UInt8]]? {
    get { rest?.lastAttributes }
    set { if newValue != nil || rest != nil { madeRest().lastAttributes = newValue } }
  }

  /// The value that a key's file had when it lost its name, for a program that had looked it up before.
  var lastEntry: SuiteSnapshot.Entry? {
    get { rest?.lastEntry }
    set { if newValue != nil || rest != nil { madeRest().lastEntry = newValue } }
  }

  /// Handles that may hold content which is not committed yet.
  var writers: [ObjectIdentifier: Handle] {
    get { rest?.writers ?? [:] }
    set { if !newValue.isEmpty || rest != nil { madeRest().writers = newValue } }
  }

  /// The process that made the file with O_EXCL: if it renames it over a key, that is a save.
  var creator: ProcessID? {
    get { rest?.creator }
    set { if newValue != nil || rest != nil { madeRest().creator = newValue } }
  }
}

/// Every node that is known, by number and by place.
struct NodeTable: Sendable {
  private var byNumber: [UInt64: Node] = [:]
  private var byPlace: [Place: Node] = [:]
  private var last: UInt64 = 1

  init(root: Node) {
    byNumber[root.number] = root
    byPlace[.root] = root
  }

  subscript(number: UInt64) -> Node? { byNumber[number] }

  func known(_ place: Place) -> Node? { byPlace[place] }

  /// The node at `place`, which is new where it was not asked for yet.
  mutating func node(at place: Place) -> Node {
    if let known = byPlace[place] { return known }
    last += 1
    let node = Node(number: last, place: place)
    byNumber[last] = node
    byPlace[place] = node
    return node
  }

  /// The name is gone. The number stays for those who hold the node, until `forget`.
  mutating func remove(_ place: Place) {
    byPlace.removeValue(forKey: place)?.state.withLock { $0.isRemoved = true }
  }

  /// The same, unless another node has got the name meanwhile.
  mutating func remove(_ node: Node, at place: Place) {
    if byPlace[place] === node { remove(place) }
  }

  /// Moves the node at `old`, and everything below it, to `new`; what was at `new` is removed.
  mutating func move(_ old: Place, to new: Place) {
    remove(new)
    let affected = old.isDirectory ? Array(byPlace) : byPlace[old].map { [(old, $0)] } ?? []
    for (place, node) in affected {
      guard let moved = place.moved(from: old, to: new) else { continue }
      byPlace[place] = nil
      byPlace[moved] = node
      node.state.withLock { $0.place = moved }
    }
  }

  /// The move is done. A node that was made for the old name while `node` had the new one already is removed.
  mutating func finishMove(of node: Node, from old: Place, to new: Place) {
    if node.place == old { move(old, to: new) } else { remove(old) }
  }

  /// The kernel has forgotten the number. A file that still has its name keeps the number.
  mutating func forget(_ node: Node) {
    if node.isRemoved { byNumber[node.number] = nil }
  }
}
