import DefaultKeychain
import Model
public import Observation
public import WrapperCore

/// A value in the keychain: the base class of `@GenericPassword` and `@InternetPassword`.
open class KeychainItemPropertyWrapper<T: Codable>: SingleValueKeychainItem, Observable, @unchecked Sendable {
  // The mutable state is behind locks.
  /// When the keychain is read and written, as given to the initialiser.
  public let refreshPolicy: KeychainDataRefreshPolicy
  private let defaultValue: T?
  private let keychain: LiveKeychain
  private let announcer = Announcer()
  private let state = Guarded(State())
  private let listening = Guarded<Listening?>(nil)

  private struct State {
    var value: T?
    var isUnchanged = false
    var error: (any Error)?
    /// The keychain's last error, which has more than its number.
    var failure: StoreError?
    /// The item as it was last announced; nil: it was never read.
    var seen: Item??
  }

  /// - Parameters:
  ///   - refreshPolicy: when the keychain is read and written.
  ///   - defaultValue: the value if there is no item; it is never stored.
  public init(refreshPolicy: KeychainDataRefreshPolicy, defaultValue: T? = nil) {
    self.refreshPolicy = refreshPolicy
    self.defaultValue = defaultValue
    keychain = KeychainLocation.chosen.live
    super.init()
  }

  /// Whether the value has not been set since it was last loaded, saved or deleted.
  public private(set) var wrappedValueUnchanged: Bool {
    get { state.withLock { $0.isUnchanged } }
    set { state.withLock { $0.isUnchanged = newValue } }
  }

  /// The value; with `onAccess` as it is stored now, and stored when it is set. An error is logged, and is the
  /// `error` of the projection.
  ///
  /// If the value can't be read, it is the default; if the keychain does not answer within ten seconds, the value that was
  /// read last.
  open var wrappedValue: T? {
    get {
      announcer.access()
      if refreshPolicy == .onAccess {
        listen()
        let failure = attempt { try load() }
        if let failure, !failure.leavesTheValue { return defaultValue }
      }
      return state.withLock { $0.value } ?? defaultValue
    }
    set {
      state.withLock { state in
        state.value = newValue
        state.isUnchanged = false
      }
      guard refreshPolicy == .onAccess else { return announcer.tell() }
      attempt { try saveToKeychain() }
    }
  }

  /// The changes of the value (`values`), and the last error (`error`).
  public var projectedValue: LiveProjection<T?> {
    LiveProjection(
      value: { [self] in wrappedValue }, error: { [self] in state.withLock { $0.error } },
      values: LiveSequence { [self] in follow($0) })
  }

  /// Stores the value and the attributes that were set; a value of nil deletes the item.
  ///
  /// - Throws: `KeychainError`, and what the value's own `encode(to:)` throws.
  open func saveToKeychain() throws {
    guard let value = state.withLock({ $0.value }) else { return try deleteKeychain() }
    let data = try KeychainEncoder().encode(value)
    try storing { () throws(StoreError) in
      try keychain.save(query, secret: data) { (item) throws(StoreError) in try apply(to: &item) }
    }
    wasSaved()
    wrappedValueUnchanged = true
  }

  /// Replaces value and attributes by the stored ones; without an item the value is nil.
  ///
  /// - Throws: `KeychainError`, and what the value's own `init(from:)` throws; the value stays then.
  open func loadFromKeychain() throws {
    try load()
    tellOfManualChange()
  }

  private func load() throws {
    let found = try storing { () throws(StoreError) in try keychain.first(query) }
    load(found?.item)
    state.withLock { if $0.seen == nil { $0.seen = .some(found?.item) } }
    let value = try found.map { try KeychainDecoder().decode(T.self, from: $0.secret) }
    state.withLock { state in
      state.value = value
      state.isUnchanged = true
      state.error = nil
    }
  }

  /// Deletes every item that the attributes match; none is no error. - Throws: `KeychainError`.
  open func deleteKeychain() throws {
    try storing { () throws(StoreError) in try keychain.removeAll(query) }
    load(nil)
    state.withLock { state in
      state.value = nil
      state.isUnchanged = true
      state.error = nil
    }
    tellOfManualChange()
  }

  private func storing<Result>(_ body: () throws(StoreError) -> Result) throws -> Result {
    do throws(StoreError) {
      return try body()
    } catch {
      state.withLock { $0.failure = error }
      throw KeychainError(error)
    }
  }

  /// An error that can't be thrown is logged, without the value.
  @discardableResult
  private func attempt(_ body: () throws -> Void) -> (any Error)? {
    state.withLock { $0.failure = nil }
    do {
      try body()
      state.withLock { $0.error = nil }
      return nil
    } catch {
      let failure = state.withLock { state in
        state.error = error
        return state.failure
      }
      Log.note(query.text, failure ?? error)
      return error
    }
  }
}

extension Error {
  /// Whether the error leaves the value unknown: the keychain did not answer.
  fileprivate var leavesTheValue: Bool {
    guard case .osSecure(status: errSecNotAvailable)? = self as? KeychainError else { return false }
    return true
  }
}

// Changes by others.
extension KeychainItemPropertyWrapper {
  /// Listens to the keychain from the first use on.
  private func listen() {
    listening.withLock { listening in
      guard listening == nil else { return }
      let look = Passed(value: { [weak self] in self?.look() })
      listening = keychain.listen { look.value() }
    }
  }

  private func look() {
    let item = try? keychain.knownItems(query).first
    let isNews = state.withLock { state in
      defer { state.seen = .some(item) }
      return state.seen != .some(item)
    }
    if isNews { announcer.tell() }
  }

  /// Changes by others don't change the value of a manual wrapper; its own are announced here only.
  private func tellOfManualChange() {
    if refreshPolicy == .manual { announcer.tell() }
  }

  private func follow(_ outlet: Outlet<T?>) -> Listening {
    announcer.follow(outlet) { [self] in (nil, wrappedValue) }
  }
}
