import Model
import Platform
import SecretMemory
import Store
import Synchronization
import Vault
package import VaultRecords

/// The vault's side of what is sealed for another keychain: for each sealed item one of its own, found by the item's
/// identity.
///
/// Such a *seal* has the item's class, access flags and rules, and as its secret the key of what the other keychain
/// holds. It decides, whatever was done to the item over there.
package final class Seals: Sendable {
  fileprivate struct State {
    var vault: (any KeychainEngine)?
    /// Why the vault can't be opened.
    var failure: StoreError?
    /// By the seals' own identities; nil: the vault was never unlocked.
    var seals: [ItemIdentity: Item]?
    /// Seals of items that are being moved, by what they were.
    var former: [ItemIdentity: Item] = [:]
    /// Another process has changed seals, or they are known only now.
    var hasNews = false
    /// The vault was just unlocked: its seals have to be known before any item is given out.
    var isUntold = false
  }

  private let isThere: @Sendable () -> Bool
  private let open: @Sendable () throws(StoreError) -> any KeychainEngine
  private let state = Mutex(State())

  /// `open` makes the vault where it is missing, which `isThere` tells.
  init(
    isThere: @escaping @Sendable () -> Bool,
    open: @escaping @Sendable () throws(StoreError) -> any KeychainEngine
  ) {
    (self.isThere, self.open) = (isThere, open)
  }

  /// Those of the vault in a folder.
  package convenience init(vault folder: String, state: String, passwordCost: PassphraseCost = .standard) {
    self.init(isThere: { Files.exists(folder + "/vault.db") }) { () throws(StoreError) in
      try VaultEngine(directory: folder, stateDirectory: state, part: .seals, passwordCost: passwordCost)
    }
  }

  /// The vault; nil: there is none yet, and none is needed.
  func vault(making: Bool) throws(StoreError) -> (any KeychainEngine)? {
    if let vault = state.withLock({ $0.vault }) { return vault }
    guard making || isThere() else { return nil }
    do throws(StoreError) {
      let opened = try open()
      return state.withLock { state in
        let vault = state.vault ?? opened
        (state.vault, state.failure) = (vault, nil)
        return vault
      }
    } catch {
      state.withLock { $0.failure = error }
      throw error
    }
  }

  /// The vault where it is open already, or opens now.
  private var present: (any KeychainEngine)? {
    if state.withLock({ $0.failure }) != nil { return nil }
    return try? vault(making: false)
  }

  /// For `keyhole status`.
  var problems: [Problem] {
    if let failure = state.withLock({ $0.failure }) {
      return [
        Problem(
          subject: "vault", reason: "the vault that seals items can't be opened: \(failure.message)",
          remedy: "`keyhole doctor` says more")
      ]
    }
    return state.withLock { $0.vault }?.problems() ?? []
  }

  var trust: KeychainTrust { state.withLock { $0.vault }?.trust ?? .trusted }
}

// MARK: What is known

extension Seals {
  /// Looks for what other processes did.
  func refresh() {
    guard let vault = present else { return }
    let isKnown = state.withLock { $0.seals != nil }
    guard let changes = try? isKnown ? vault.changes() : .everything(vault.items()) else { return }
    state.withLock { $0.take(changes) }
  }

  /// Whether there is something to tell of items that did not change where they are kept. Asked once for each news.
  func takeNews() -> Bool {
    state.withLock { state in
      defer { (state.hasNews, state.isUntold) = (false, false) }
      return state.hasNews
    }
  }

  /// nil: the item is not sealed, or that is not known.
  func seal(of identity: ItemIdentity) -> Item? {
    state.withLock { state in
      guard let seals = state.seals, !seals.isEmpty else { return nil }
      return seals[identity.seal] ?? state.former[identity.seal]
    }
  }

  /// Every seal that the item's secret may be sealed under: while it is being moved there are two.
  func candidates(for identity: ItemIdentity) -> [Item] {
    state.withLock { state in
      [state.seals?[identity.seal], state.former[identity.seal]].compactMap { $0 }
    }
  }

  /// Whether there are any; nil: the vault was never unlocked.
  var isUsed: Bool? { state.withLock { $0.seals.map { !$0.isEmpty } } }

  /// Whether a secret that is sealed, or is to be, can be opened now. From memory.
  func isAccessible(_ item: Item) -> Bool {
    guard let vault = present else { return true }
    return !state.withLock { $0.isUntold } && vault.locking.isAccessible(item)
  }

  var isOpen: Bool { present.map { $0.locking.lockState == .open } ?? true }

  var needsPassphrase: Bool { present?.locking.needsPassphrase ?? false }

  func lock() throws(StoreError) {
    guard let locking = state.withLock({ $0.vault })?.locking, locking.lockState == .open else { return }
    try locking.lock()
  }

  /// - Throws: `rejected`, `locked` where a passphrase is missing.
  func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError) {
    guard let locking = try vault(making: false)?.locking, locking.lockState != .open else { return }
    guard !passphrase.isEmpty || !locking.needsPassphrase else { throw .locked }
    state.withLock { $0.isUntold = true }
    try locking.unlock(passphrase)
    refresh()
    state.withLock { $0.hasNews = true }
  }
}

// MARK: Changing them

extension Seals {
  /// A seal as it is known now.
  func present(_ seal: Item) -> Item {
    state.withLock { $0.seals?.values.first { $0.id == seal.id } } ?? seal
  }

  func note(_ seals: [Item], replacing old: [Item] = []) {
    state.withLock { state in
      var items = state.seals ?? [:]
      for item in old { items[item.identity] = nil }
      for item in seals { items[item.identity] = item }
      state.set(items)
    }
  }
}

extension Seals.State {
  fileprivate mutating func take(_ changes: ExternalChanges) {
    let old = seals ?? [:]
    switch changes {
    case .none: return
    case .items(let news):
      let changed = Set(news.map(\.id))
      let others = old.values.filter { !changed.contains($0.id) }
      set(Self.byIdentity(others + news.compactMap(\.item)))
    case .everything(let items): set(Self.byIdentity(items))
    }
    if seals != old { hasNews = true }
  }

  private static func byIdentity(_ items: [Item]) -> [ItemIdentity: Item] {
    Dictionary(items.map { ($0.identity, $0) }, uniquingKeysWith: { first, _ in first })
  }

  fileprivate mutating func set(_ items: [ItemIdentity: Item]) {
    seals = items
    former = [:]
    for item in items.values {
      if let identity = item.formerSeal { former[identity] = item }
    }
  }
}

// MARK: What a seal says

extension Item {
  private static let former: ExactString = "former"
  private static let unfinished: ExactString = "unfinished"

  /// The seal of an item.
  init(sealing item: Item) {
    self.init(id: ItemID(rawValue: ""), identity: item.identity.seal, created: item.created, modified: .never)
    takeProtection(of: item)
  }

  /// Takes the attributes that decide on access to the secret.
  mutating func takeProtection(of item: Item) {
    (accessibility, access, programs) = (item.accessibility, item.access, item.programs)
    attributes[FingerprintEnrollment.attribute] = item.attributes[FingerprintEnrollment.attribute]
  }

  func hasProtection(of item: Item) -> Bool {
    accessibility == item.accessibility && access == item.access && programs == item.programs
      && attributes[FingerprintEnrollment.attribute] == item.attributes[FingerprintEnrollment.attribute]
  }

  /// The identity that the seal had before a move that is not finished.
  var formerSeal: ItemIdentity? {
    get {
      attributes[Self.former].flatMap { ExactString(utf8: $0) }.map {
        .generic(service: ItemIdentity.seals, account: $0)
      }
    }
    set {
      if case .generic(_, let account)? = newValue {
        attributes[Self.former] = Array(account.utf8)
      } else {
        attributes[Self.former] = nil
      }
    }
  }

  /// The other keychain may hold the secret sealed or as it is: it is just being sealed, or unsealed.
  var isUnfinished: Bool { unfinishedSize != nil }

  /// How long the secret is meanwhile, which the other keychain's length does not tell.
  var unfinishedSize: Int? {
    get { attributes[Self.unfinished].flatMap { ExactString(utf8: $0) }.flatMap { Int($0.string) } }
    set { attributes[Self.unfinished] = newValue.map { Array($0.description.utf8) } }
  }
}

extension Timestamp {
  fileprivate static let never = Timestamp(seconds: 0)
}
