public import Model
import SecretMemory
public import Store
import Synchronization
import Views

extension FileTree {
  /// Locks the keychain and wipes what open files and scratch hold of secrets that are not to be read now.
  ///
  /// Uncommitted content is lost; later reads and writes of such a file fail with `locked`.
  /// - Throws: what the keychain throws; the files are wiped all the same.
  public func lock() throws(StoreError) {
    guard let keychain else { return }
    defer { forgetLocked() }
    // Of a value that has just changed it is still under way, and afterwards it can't be known.
    if !options.isReadOnly { views?.sealAllLengths() }
    try keychain.lock()
  }

  /// Whether a look-up of a name in a directory asks for the passphrase: of a keychain that was never unlocked not even names
  /// are known, so that no secret can be opened without it.
  ///
  /// Names for which programs look in every directory ask for nothing, nor does a shell in which a command line is typed: it
  /// looks at the paths in it with each key.
  public func asksForNames(in directory: UInt64, _ name: [UInt8], by caller: Caller) -> Bool {
    guard keychain?.engine.locking.lockState == .sealed, let node = node(directory) else { return false }
    switch node.place {
    case .itemClass, .folder, .item, .view(.folder):
      let isProbe = Self.probedNames.contains(String(decoding: name, as: UTF8.self))
      return !isProbe && !caller.looksAtCommandLine
    default: return false
    }
  }

  /// Names that version control systems and file managers look for. Those with a leading dot are none of the tree.
  private static let probedNames: Set<String> = [
    "HEAD", "CVS", "RCS", "SCCS", "_darcs", "_FOSSIL_", "BUILD", "WORKSPACE", "Makefile", "Cargo.toml",
    "package.json",
    "pyproject.toml", "desktop.ini", "Desktop.ini", "autorun.inf", "Thumbs.db", "folder.jpg", "lost+found",
  ]

  /// The secrets that are open, locked or not.
  public var openSecrets: [Node] {
    secretHandles.withLock { $0.values.compactMap { $0.handle?.node } }
  }

  /// Wipes what open files and scratch hold of secrets that are not to be read now, whichever process has locked them.
  public func forgetLocked() {
    for handle in secretHandles.withLock({ $0.values.compactMap(\.handle) }) {
      guard !isUnlocked(handle.node.place) else { continue }
      handle.seal()
    }
    views?.forgetRemovedViews()
    forgetStagedOtpauth()
    for place in overlay.withLock({ $0.secretScratch }) where !isUnlocked(.scratch(place)) { wipe(place) }
    wipeStack()
  }

  /// Whether the secret that stands at a place, or that scratch there may be a copy of, can be read now.
  func isUnlocked(_ place: Place) -> Bool {
    switch place {
    case .value(let item), .otpauth(let item), .code(let item): isUnlocked(item)
    case .history(let place): isUnlocked(place)
    case .view(let view): isViewUnlocked(view)
    case .scratch(let scratch):
      switch scratch.directory {
      case .item(let item): isUnlocked(item)
      case .views(.views): keychain?.engine.locking.lockState == .open
      case .suite, .views(.templates): true
      }
    default: true
    }
  }

  private func isUnlocked(_ place: ItemPlace) -> Bool {
    guard let keychain, let item = try? anyItem(place) else {
      // Removed since it was opened: nothing tells its class any more.
      return keychain?.engine.locking.lockState == .open
    }
    return keychain.engine.locking.isAccessible(item)
  }

  private func wipe(_ place: ScratchPlace) {
    let file = overlay.withLock { overlay in
      defer { overlay[place] = nil }
      return overlay[place]
    }
    try? file?.resize(to: 0)
    nodes.withLock { $0.remove(.scratch(place)) }
  }
}

extension Overlay {
  /// Scratch of items that has content of its own. What a link points to is no secret.
  fileprivate var secretScratch: [ScratchPlace] {
    scratch.filter { $0.key.isSecret }.flatMap { directory, files in
      files.filter { $0.value.state.withLock { $0.target == nil } }
        .map { ScratchPlace(directory: directory, name: $0.key) }
    }
  }
}

extension Handle {
  /// Wipes what the handle holds; from now on it fails with `locked`.
  func seal() {
    state.withLock { state in
      state.draft = .untouched(nil)
      (state.permit, state.viewBase) = (nil, nil)
      state.fate = .sealed
    }
  }
}

/// An open file that may be gone already.
struct WeakHandle: Sendable {
  weak let handle: Handle?

  init(_ handle: Handle) {
    self.handle = handle
  }
}
