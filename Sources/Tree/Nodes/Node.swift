import Model
import Store
import Synchronization

/// One file or directory of the tree, for as long as the kernel knows it: a rename moves it, an unlink
/// leaves it to the open handles.
public final class Node: Sendable {
  /// The file's number (`st_ino`): stable while the tree lives. The root's is 1.
  public let number: UInt64

  /// There is one for each file that the kernel knows, so it is packed.
  struct State {
    var place: Place
    /// The name is gone; what is still written goes nowhere.
    var isRemoved = false
    /// It was looked up since `FileTree.takeUnusedNodes` looked at it.
    var isUsed = false
    /// nil: the status was never returned.
    private var kind: NodeStatus.Kind?
    private var size: UInt32 = 0
    private var modified: Int64 = 0
    private var nanoseconds: UInt32 = 0
    private var lowLookups: UInt32 = 0
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
      var highLookups: UInt32 = 0
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
  public var isInKeychain: Bool { state.withLock { $0.place.isInKeychain } }

  /// The place, and the attributes as `keptAttributes` has them, both of one moment.
  var placeAndKeptAttributes: (Place, [String: [UInt8]]?) {
    state.withLock { ($0.place, $0.isRemoved ? $0.lastAttributes : nil) }
  }

  /// Whether the file is open for writing, so that its size and times may change at any moment.
  public var isBeingWritten: Bool { state.withLock { !$0.writers.isEmpty } }

  /// Whether the kernel has a reference to it: lookups that it has not taken back.
  public var isLookedUp: Bool { state.withLock { $0.lookups > 0 } }
}

extension Node.State {
  /// The last status that was returned: a file that was removed shows it to those who have it open. Without its links and
  /// version, and up to a size of 4 GiB, beyond which only `.keyhole/events` grows.
  var lastStatus: NodeStatus? {
    get {
      guard let kind else { return nil }
      return NodeStatus(
        kind: kind, size: Int(size), modified: Timestamp(seconds: modified, nanoseconds: nanoseconds),
        accessed: accessed, links: 1)
    }
    set {
      kind = newValue?.kind
      guard let newValue else { return }
      size = UInt32(clamping: newValue.size)
      (modified, nanoseconds) = (newValue.modified.seconds, newValue.modified.nanoseconds)
      accessed = newValue.accessed
    }
  }

  /// The lookup count: references of the kernel.
  var lookups: UInt64 {
    get { UInt64(rest?.highLookups ?? 0) << 32 | UInt64(lowLookups) }
    set {
      lowLookups = UInt32(truncatingIfNeeded: newValue)
      let high = UInt32(truncatingIfNeeded: newValue >> 32)
      if high != 0 || rest != nil { madeRest().highLookups = high }
    }
  }

  /// Whether it has something that can't be found out again from the place.
  var isNeeded: Bool {
    guard let rest else { return false }
    return rest.accessed != nil || rest.lastEntry != nil || !rest.writers.isEmpty || rest.creator != nil
  }

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
