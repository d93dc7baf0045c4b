public import Model
import Notifier
import Platform
import SecretMemory
public import Store
import Synchronization

extension FileTree {
  /// Opens a file. What can be known now is refused now, because few programs look at what close returns.
  ///
  /// - Throws: `isDirectory`, `readOnly`, `accessDenied`, `locked`, `notFound`, `tooManyOpen`.
  ///
  /// `permit`: what `permission(toOpen:)` gave; without one, a file that takes a question is refused.
  public func open(
    _ node: Node, _ mode: OpenMode, by caller: Caller, _ permit: Permit? = nil
  ) throws(StoreError) -> Handle {
    switch node.place {
    case .key(let place): return try openKey(place, node, mode, caller)
    case .value, .otpauth:
      if let permit { return try openSecret(node, mode, caller, permit) }
      return try openSecret(node, mode, caller, permitNow(permission(toOpen: node, mode, by: caller)))
    case .code(let place):
      if let permit { return try openCode(of: place, node, mode, permit) }
      return try openCode(of: place, node, mode, permitNow(permission(toOpen: node, mode, by: caller)))
    case .history(.version(let item, let number)):
      if let permit { return try openVersion(number, at: item, node, mode, permit) }
      let permit = try permitNow(permission(toOpen: node, mode, by: caller))
      return try openVersion(number, at: item, node, mode, permit)
    case .view(.file(let folder, let name)):
      if let permit { return try openView(name, in: folder, node, mode, caller, permit) }
      let permit = try permitNow(permission(toOpen: node, mode, by: caller))
      return try openView(name, in: folder, node, mode, caller, permit)
    case .history(.viewText(let name, let number)):
      return try openVersion(number, ofView: name, node, mode)
    case .history(.setting(let key, let number)): return try openSetting(number, of: key, node, mode)
    case .scratch(let place): return try openScratch(place, node, mode)
    case .status: return try openStatus(node, mode)
    case .events: return try openEvents(node, mode)
    default: throw .isDirectory
    }
  }

  private func openKey(
    _ place: KeyPlace, _ node: Node, _ mode: OpenMode, _ caller: Caller
  ) throws(StoreError) -> Handle {
    guard let snapshot = try settings.suite(place.suite).fetch() else { throw .notFound }
    let isPending = overlay.withLock { $0.pending[.key(place)] != nil }
    var entry = isPending ? nil : snapshot.entries[place.key]
    guard entry != nil || isPending || node.isRemoved else { throw .notFound }
    // Looked at last: a file that is replaced loses its name before the new value is visible, and keeps the old one.
    if node.isRemoved {
      guard let last = node.state.withLock({ $0.lastEntry }) else { throw .notFound }
      entry = last
    }
    if mode.contains(.write) || mode.contains(.truncate) {
      try settings.suite(place.suite).requireWritable()
      if !node.isRemoved,
        let reason = try settings.engine.origins?.obstacle(toChanging: place.key, in: place.suite)
      {
        throw .notPermitted(reason: reason)
      }
    }
    var state = Handle.State()
    state.original = entry?.value ?? .data([])
    state.version = entry?.version ?? 0
    begin(&state, mode, node, caller)
    return Handle(node, in: self, mode: mode, state: state)
  }

  private func openSecret(
    _ node: Node, _ mode: OpenMode, _ caller: Caller, _ permit: Permit?
  ) throws(StoreError) -> Handle {
    let (keychain, file) = (try requireKeychain(), node.place)
    guard let (place, which) = file.secret else { throw .notFound }
    if mode.contains(.write) { try keychain.requireWritable() }
    var state = Handle.State()
    state.permit = permit?.ofHandle
    var stored: Item?
    if let content = stagedContent(at: file) {
      if mode.contains(.read), !mode.contains(.truncate) { state.draft = .untouched(content) }
    } else if !overlay.withLock({ $0.pending[file] != nil }) {
      guard let item = try storedItem(place), item.secrets.isSuperset(of: which) else { throw .notFound }
      stored = item
      // A call that may block must not do so at a write, so it is made now.
      let isWanted = mode.contains(.read) || keychain.mayBlock
      if !isWanted || mode.contains(.truncate) { try keychain.checkAccess(to: item, permit, which) }
      if isWanted, !mode.contains(.truncate) {
        state.draft = .untouched(
          .secret(
            try tooManyIfExhausted { () throws(StoreError) in
              try keychain.secret(which, of: item, permit)
            }))
      } else if item.isSealed, which == .value {
        // A secret that was tampered with is not overwritten.
        _ = try tooManyIfExhausted { () throws(StoreError) in try keychain.secret(of: item, permit) }
      }
    }
    // The secret may be that of the file that has replaced this one.
    guard !node.isRemoved else { throw .notFound }
    begin(&state, mode, node, caller)
    let handle = Handle(node, in: self, mode: mode, state: state)
    // A lock that came meanwhile may have missed the handle.
    guard stored.map(keychain.engine.locking.isAccessible) ?? isUnlocked(file) else {
      handle.seal()
      throw .locked
    }
    do throws(StoreError) { try permit?.requireUnchangedCaller() } catch {
      handle.abandon()
      handle.seal()
      throw error
    }
    return handle
  }

  private func openScratch(
    _ place: ScratchPlace, _ node: Node, _ mode: OpenMode
  ) throws(StoreError) -> Handle {
    guard let file = overlay.withLock({ $0[place] }) else { throw .notFound }
    if mode.contains(.truncate) { try file.resize(to: 0) }
    return Handle(node, in: self, mode: mode, scratch: file)
  }

  private func openStatus(_ node: Node, _ mode: OpenMode) throws(StoreError) -> Handle {
    guard !mode.contains(.write) else { throw .accessDenied(reason: "the status can only be read") }
    var state = Handle.State()
    state.draft = .untouched(.plain(options.status()))
    return Handle(node, in: self, mode: mode, state: state)
  }

  private func openEvents(_ node: Node, _ mode: OpenMode) throws(StoreError) -> Handle {
    guard !mode.contains(.write) else { throw .accessDenied(reason: "the events can only be read") }
    return Handle(node, in: self, mode: mode, events: EventReader(events))
  }

  func begin(
    _ state: inout Handle.State, _ mode: OpenMode, _ node: Node, _ caller: Caller
  ) {
    guard mode.isSuperset(of: [.write, .truncate]) else { return }
    state.draft = .emptied
    state.check = check(ofEmpty: node, declared: nil)
    if let process = caller.process { state.writers[caller] = process }
  }

  /// Without locked memory for the secret, the system's own word is that too much is open.
  private func tooManyIfExhausted(
    _ body: () throws(StoreError) -> SecretBytes
  ) throws(StoreError) -> SecretBytes {
    do {
      return try body()
    } catch {
      guard case .outOfMemory = error else { throw error }
      throw .tooManyOpen
    }
  }

  /// The check of the content of a file that is empty now.
  func check(ofEmpty node: Node, declared: SettingType?) -> ContentCheck {
    switch node.place {
    case .otpauth: return .uri(KeyURICheck())
    case .view(.file(.templates, _)): return .text(TextCheck())
    default: break
    }
    return prefix(for: node, declared: declared).map(ContentCheck.setting) ?? .none
  }

  /// Follows the content of a key while it is written; nil: any content is valid.
  func prefix(for node: Node, declared: SettingType?) -> ContentPrefix? {
    expectedType(of: node, declared: declared).map(ContentPrefix.init)
  }

  /// The type that the content of a key will be read as; nil: the one that it shows by itself.
  func expectedType(of node: Node, declared: SettingType?) -> SettingType? {
    guard case .key(let place) = node.place else { return nil }
    let pending = overlay.withLock { $0.pending[.key(place)] }
    if let type = declared ?? pending?.declaredType { return type }
    guard pending == nil else { return nil }
    let stored = settings.suite(place.suite).snapshot?.entries[place.key]?.value
    return settledType(of: stored, at: place)
  }

  /// Refuses what is written to a setting of Keyhole's own, as far as no further bytes could mend it: the commit would be too
  /// late for a shell, which does not look at what close(2) says.
  ///
  /// - Throws: `invalidValue`, `notPermitted`.
  func checkConfiguration(
    _ content: Content, at place: KeyPlace, _ type: SettingType?
  ) throws(StoreError) {
    let bytes = content.withBytes { $0.array }
    guard let value = try? settings.codec.value(of: bytes, as: type) else { return }
    let stored = settings.suite(place.suite).snapshot?.entries[place.key]?.value
    try SuiteConfiguration.check(
      place.key, written: value, isLine: bytes.last == UInt8(ascii: "\n"), before: stored)
  }

  /// The secret that is stored at a node's place now, if it could be opened now.
  func accessibleContent(of node: Node) throws(StoreError) -> Content {
    guard let (place, which) = node.place.secret, let item = try storedItem(place) else { throw .notFound }
    try requireKeychain().checkAccess(to: item, nil, which)
    return try committedContent(of: node)
  }

  /// The content of what is stored at a node's place.
  func committedContent(of node: Node, _ permit: Permit? = nil) throws(StoreError) -> Content {
    let place = node.place
    guard !node.isRemoved else { return try removedContent(of: node) }
    guard overlay.withLock({ $0.pending[place] == nil }) else { return try .empty(secret: place.isSecret) }
    switch place {
    case .key(let key):
      let value = settings.suite(key.suite).snapshot?.entries[key.key]?.value
      guard let value else { return .plain([]) }
      return .plain(try settings.codec.content(of: value))
    case .value(let item), .otpauth(let item):
      if let content = stagedContent(at: place) { return content }
      guard let item = try storedItem(item), let (_, which) = place.secret, item.secrets.isSuperset(of: which)
      else { return try .empty(secret: true) }
      return .secret(try requireKeychain().secret(which, of: item, permit))
    case .view(.file(let folder, let name)): return try contentOfView(name, in: folder, permit)
    case .scratch(let scratch):
      guard let file = overlay.withLock({ $0[scratch] }) else { return try .empty(secret: place.isSecret) }
      return file.state.withLock { $0.content }
    default:
      return try .empty(secret: place.isSecret)
    }
  }

  /// The content of a removed file that was opened only for writing, and so can't be read: zero bytes. Its place
  /// may be another file's by now.
  private func removedContent(of node: Node) throws(StoreError) -> Content {
    var content = try Content.empty(secret: node.isSecret)
    try content.resize(to: committedSize(of: node))
    return content
  }
}
