import DefaultKeychain
public import FoundationEssentials
import Synchronization
package import WrapperCore

/// The reason why a property of `@KeychainStorage` differs from the stored value.
public enum KeychainStorageError: Error, Sendable {
  /// The value under the key has another type than the property: the type of the first writer remains.
  case storedTypeDiffers
  /// The value has no JSON.
  case notEncodable
  /// The provider refused.
  case refused
  /// The keychain is locked, does not answer, or does not give what is stored; the value is what was read last.
  case unreadable
}

extension KeychainStorageError: LocalizedError, LoggedError {
  /// The failure, for `localizedDescription`. It never holds a value.
  public var errorDescription: String? { logText }

  package var logText: String {
    switch self {
    case .storedTypeDiffers: "what is stored does not read as the property's type"
    case .notEncodable: "the value has no JSON"
    case .refused: "the keychain did not store it"
    case .unreadable: "the keychain is locked, does not answer, or does not give what is stored"
    }
  }
}

/// The value of one property: in step with all others of its key and type.
final class StoredEntry<Value: Sendable & Equatable & Codable>: @unchecked Sendable {
  // A provider that need not be `Sendable` is used under the lock of `peers` only.
  private let key: String
  private let provider: any KeychainProvider
  private let watched: (any WatchedProvider)?
  private let peers: Peers
  private let announcer = Announcer()
  private let state: Mutex<EntryState<Value>>
  private let listening = Mutex<Listening?>(nil)

  init(_ key: String, first: Value, provider: any KeychainProvider) {
    self.key = key
    self.provider = provider
    watched = provider as? any WatchedProvider
    peers = Peers.of(key, Value.self)
    state = Mutex(EntryState(first: first))
  }

  /// Reads what is stored, or stores the first value, and joins the others.
  func begin() {
    if let watched {
      // The watch stands before anything is read, so that nothing is missed in between.
      let listening = watched.listen { [weak self] in self?.look() }
      self.listening.withLock { $0 = listening }
    } else {
      peers.add(self)
    }
    if let problem = exclusively({ storeFirst() }) {
      note(problem)
    } else {
      look()
    }
  }

  var value: Value {
    announcer.access()
    return state.withLock { $0.value }
  }

  var error: KeychainStorageError? { state.withLock { $0.error } }

  func set(_ value: Value) {
    if watched == nil { setForPeers(value) } else { setAndLook(value) }
  }

  func follow(_ outlet: Outlet<Value>) -> Listening {
    announcer.follow(outlet) { [self] in (nil, state.withLock { $0.value }) }
  }
}

extension StoredEntry {
  /// A provider that tells of changes may tell of another's while it stores this one, so the value is what it has
  /// afterwards, and not what was set.
  private func setAndLook(_ value: Value) {
    if let problem = store(value) { return note(problem) }
    state.withLock { $0.noteStored() }
    look(orElse: value)
  }

  /// A provider that reports no changes: its properties notify each other, in the order in which they store.
  private func setForPeers(_ value: Value) {
    let (problem, changed) = exclusively { () -> (KeychainStorageError?, [StoredEntry]) in
      if let problem = store(value) { return (problem, []) }
      state.withLock { $0.noteStored() }
      return (nil, peers.members(StoredEntry.self).filter { $0.adopt(value) })
    }
    if let problem { return note(problem) }
    for entry in changed { entry.announcer.tell() }
  }

  /// One use of a provider at a time, unless it reports changes itself: then it reports a change while it
  /// makes it, and that leads here again.
  private func exclusively<Outcome, Failure: Error>(
    _ body: () throws(Failure) -> Outcome
  ) throws(Failure) -> Outcome {
    guard watched == nil else { return try body() }
    return try peers.lock.withLock { _ throws(Failure) in try body() }
  }

  private func note(_ problem: KeychainStorageError) {
    state.withLock { $0.writeError = problem }
    Log.note((provider as? Keychain)?.subject(key) ?? "keychain \(key)", "\(problem.logText) (\(Value.self))")
  }

  /// The stored value; nil: there is none. - Throws: `unreadable`, as far as the provider can tell.
  private func stored() throws(KeychainStorageError) -> Data? {
    guard let watched else { return provider.getData(forKey: key) }
    do { return try watched.secret(forKey: key) } catch { throw .unreadable }
  }

  /// Stores the first value where there is none. nil: there is one now, or none to be stored.
  private func storeFirst() -> KeychainStorageError? {
    let first = state.withLock { $0.first }
    do throws(KeychainStorageError) {
      guard try stored() == nil, !first.isNil, let data = try? JSONEncoder().encode(first) else { return nil }
      let isStored = watched?.setFirstData(data, forKey: key) ?? provider.setData(data, forKey: key)
      return isStored ? nil : .refused
    } catch {
      return error
    }
  }

  /// nil: it is stored.
  private func store(_ value: Value) -> KeychainStorageError? {
    do throws(KeychainStorageError) {
      if let stored = try stored() { _ = try decoded(stored) }
    } catch {
      return error
    }
    if value.isNil { return provider.deleteData(forKey: key) ? nil : .refused }
    guard let data = try? JSONEncoder().encode(value) else { return .notEncodable }
    return provider.setData(data, forKey: key) ? nil : .refused
  }

  /// Takes the value that is stored now, or `value` if that can't be read.
  ///
  /// Nothing is locked meanwhile, as the user may have to be asked. Of reads that overlap, the one that began last counts:
  /// after each change one begins, so it has read the newest value.
  private func look(orElse value: Value? = nil) {
    let number = state.withLock { $0.beginLook() }
    let found = Result { () throws(KeychainStorageError) in
      let data = try exclusively { () throws(KeychainStorageError) in try stored() }
      return try data.map { (data) throws(KeychainStorageError) in try decoded(data) }
    }
    if state.withLock({ $0.endLook(number, found, orElse: value) }) { announcer.tell() }
  }

  /// Whether it is another value than before.
  private func adopt(_ value: Value) -> Bool {
    state.withLock { $0.adopt(value) }
  }

  private func decoded(_ data: Data) throws(KeychainStorageError) -> Value {
    guard let value = try? JSONDecoder().decode(Value.self, from: data) else { throw .storedTypeDiffers }
    return value
  }
}
