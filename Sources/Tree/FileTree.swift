public import Model
public import Notifier
import SecretMemory
public import Store
import Synchronization
public import Views

/// The tree of SPECIFICATION.md as plain Swift: what the mount shows the kernel, and the command its user.
///
/// Every method may be called from any thread. Looking needs no lock but short ones; what changes a store
/// may wait for a disk.
public final class FileTree: Sendable {
  /// How many bytes a value in `defaults` may have.
  public static let settingLimit = 16 * 1024 * 1024
  /// How many bytes a secret may have.
  public static let secretLimit = 1024 * 1024

  /// Settings that mount options or the process around the tree decide.
  public struct Options: Sendable {
    /// Secrets are stored exactly as written, also where they are one line (`eol=exact`).
    public var keepsLineEnds = false
    /// Nothing can be written, and the code of a counter is not given out: `-o ro`.
    public var isReadOnly = false
    /// The content of `.keyhole/status`.
    public var status: @Sendable () -> [UInt8] = { Array("{}\n".utf8) }
    /// The digest of the fingers that are enrolled now, for `biometryCurrentSet`; nil: nothing tells.
    public var enrolledFingers: @Sendable () -> String? = { nil }
    /// The factors that the user can be asked for here. Flags that need others are refused when they are set.
    public var factors: @Sendable (KeychainStore) -> ApprovalFactors = { _ in .all }
    /// `$XDG_STATE_HOME/keyhole`; nil: views don't follow settings that are renamed while the vault is locked.
    public var stateFolder: String?
    /// There is a vault, which this tree is without.
    public var isWithoutVault = false

    /// One line's end at the end of a secret is dropped, and the status is an empty object.
    public init() {}
  }

  /// The suites that `defaults` shows.
  public let settings: SettingsStore
  /// nil: `keychain=none`.
  public let keychain: KeychainStore?
  /// The files of `views`; nil: `keychain=none`.
  public let views: Views?
  let pendingRenames: PendingRenames?
  /// The options that the tree was made with.
  public let options: Options
  /// The top directory, number 1. It is never forgotten.
  public let root: Node
  /// The changes of the stores, for `.keyhole/events`.
  public let events = EventLog { .now }
  /// Directories of services and servers that the keychain's items make.
  let shownFolders: Mutex<Set<FolderPlace>> = Mutex([])
  let overlay = Mutex(Overlay())
  let nodes: Mutex<NodeTable>
  let started = Timestamp.now
  /// nil: `.keyhole/history` was not looked at yet.
  let history = Mutex<KnownHistory?>(nil)
  /// Bytes that writers of values have written and not committed, or committed and not closed.
  let unsaved = ScratchQuota(limit: 128 * 1024 * 1024, isSecret: false)
  let settingScratch = ScratchQuota(limit: 64 * 1024 * 1024, isSecret: false)
  /// Open files of secrets, which a lock has to wipe.
  let secretHandles = Mutex<[ObjectIdentifier: WeakHandle]>([:])
  /// How the codes were that were computed last.
  let knownCodes = Mutex<[ItemID: KnownCode]>([:])
  let secretScratch = ScratchQuota(limit: 4 * 1024 * 1024, isSecret: true)

  /// Reads nothing: the stores are asked with the first call that needs them.
  public init(settings: SettingsStore, keychain: KeychainStore?, options: Options = Options()) {
    self.settings = settings
    self.keychain = keychain
    let renames = options.stateFolder.map { PendingRenames(stateFolder: $0) }
    pendingRenames = renames
    views = keychain.map {
      Views(keychain: $0, settings: settings, paths: TreePaths(), pendingRenames: renames)
    }
    self.options = options
    root = Node(number: 1, place: .root)
    nodes = Mutex(NodeTable(root: root))
  }

  /// The node of a number that was handed out; nil: it was forgotten.
  public func node(_ number: UInt64) -> Node? {
    number == root.number ? root : nodes.withLock { $0[number] }
  }

  /// Counts a reference of the kernel to a node that was found. Returns the node that has its number, which may be another
  /// one where it was forgotten since it was found.
  public func countLookup(of node: Node) -> Node {
    nodes.withLock { $0.countLookup(of: node) }
  }

  /// Takes references of the kernel back. A node without one is dropped; a file that still has its name keeps its number.
  ///
  /// `whenForgotten` is called where none is left, before the next one is counted. It must not use the tree.
  public func forget(_ number: UInt64, lookups: UInt64, whenForgotten: () -> Void) {
    nodes.withLock { nodes in
      if nodes.forget(number, lookups: lookups) { whenForgotten() }
    }
  }

  /// The nodes that the kernel knows and that were not looked up since the last call, and how many others it knows. The files
  /// of a directory come before it.
  public func takeUnusedNodes() -> (unused: [Node], used: Int) {
    var (unused, used) = ([[Node]](), 0)
    for node in nodes.withLock({ $0.all }) where node !== root {
      let depth = node.state.withLock { state -> Int? in
        defer { state.isUsed = false }
        guard state.lookups > 0 else { return nil }
        return state.isUsed ? -1 : state.place.depth
      }
      guard let depth else { continue }
      guard depth >= 0 else {
        used += 1
        continue
      }
      while unused.count <= depth { unused.append([]) }
      unused[depth].append(node)
    }
    return (unused.reversed().flatMap { $0 }, used)
  }

  func node(at place: Place) -> Node {
    nodes.withLock { $0.node(at: place) }
  }

  /// The most bytes of a key's file. Where the engine keeps less, that holds for the text of a string, with a newline behind it, which is no part
  /// of the value; of another value, whose text is longer than what is stored, only the commit knows.
  func limit(of node: Node, declaredType: SettingType?) -> Int {
    guard let largest = settings.engine.largestValue, case .key(let place) = node.place else {
      return Self.settingLimit
    }
    // A new one is a string, unless something else is declared: another text of this length is none.
    let type = declaredType ?? settings.suite(place.suite).snapshot?.entries[place.key]?.value.type ?? .string
    return type == .string ? min(largest + 1, Self.settingLimit) : Self.settingLimit
  }

  /// The room of the disk that holds the settings.
  public func room() throws(StoreError) -> DiskRoom {
    try settings.engine.room()
  }

  func requireKeychain() throws(StoreError) -> KeychainStore {
    guard let keychain else { throw .notFound }
    return keychain
  }
}

extension FileTree {
  /// Whether looking at what is in a directory may take some seconds: before the keychain of another process
  /// was read for the first time, and while one of many items is; and before a suite was read from the servers of a cluster.
  public func mayBlock(lookingIn directory: Node) -> Bool {
    if settings.asksServers, case .suite(let name) = directory.place {
      return settings.suite(name).snapshot == nil
    }
    guard let keychain, keychain.mayBlock || keychain.isLoading, !keychain.isLoaded else { return false }
    return directory.isInKeychain
  }

  /// Whether opening or changing a file, or what is in a directory, may take some seconds.
  public func mayBlock(using node: Node) -> Bool {
    keychain?.mayBlock == true && node.isInKeychain
  }
}

extension FileTree {
  /// Whether a file, or a directory's content, is asked for from the servers of a cluster, which may not answer.
  public func asksServers(using node: Node) -> Bool {
    node.isInKeychain ? keychain?.asksServers == true : settings.asksServers
  }

  /// Whether opening or changing a file may take some seconds: it may hang, or wait for a change of the vault
  /// that waits for another process.
  public func mayWait(using node: Node) -> Bool {
    guard let keychain, node.isInKeychain else { return false }
    // The code of a counter is stored first.
    if node.isCode { return true }
    return keychain.mayBlock || keychain.asksServers || keychain.isChanging || keychain.isLoading
  }
}

extension Place {
  /// Whether it stands in one of the keychain's classes, or is one.
  var isInKeychain: Bool {
    switch self {
    case .itemClass, .folder, .item, .value, .otpauth, .code, .view: true
    case .scratch(let scratch): scratch.directory.isSecret
    case .history(.folder), .history(.item), .history(.version): true
    case .root, .control, .status, .events, .history, .defaults, .suite, .key, .keychain: false
    }
  }
}
