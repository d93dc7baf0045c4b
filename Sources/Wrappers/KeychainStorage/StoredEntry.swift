import FoundationEssentials
import Live
import Synchronization

/// Why a property of `@KeychainStorage` is not what is stored, or not stored.
public enum KeychainStorageError: Error, Sendable {
  /// What is stored under the key is no value of the property's type: the first that wrote it keeps it.
  case storedTypeDiffers
  /// The value has no JSON.
  case notEncodable
  /// The provider refused.
  case refused
  /// The keychain is locked, does not answer, or does not give what is stored; the value is what was read last.
  case unreadable
}

/// The value of one property: in step with all others of its key and type.
final class StoredEntry<Value: Sendable & Equatable & Codable>: @unchecked Sendable {
  // The provider, which need not be `Sendable`, is used by `exclusively` only.
  private let key: String
  private let provider: any KeychainProvider
  private let announcer = Announcer()
  private let writing = Guarded(())
  private let state: Mutex<State>
  private let listening = Mutex<Listening?>(nil)

  private struct State {
    let first: Value
    var value: Value
    var readError: KeychainStorageError?
    var writeError: KeychainStorageError?
  }

  init(_ key: String, first: Value, provider: any KeychainProvider) {
    self.key = key
    self.provider = provider
    state = Mutex(State(first: first, value: first))
  }

  /// Reads what is stored, or stores the first value, and joins the others.
  func begin() {
    Entries.add(self, key)
    if let problem = exclusively({ storeFirst() }) {
      note(problem)
    } else {
      look()
    }
    guard let watched = provider as? any WatchedProvider else { return }
    let listening = watched.listen { [weak self] in self?.look() }
    self.listening.withLock { $0 = listening }
  }

  var value: Value {
    announcer.access()
    return state.withLock { $0.value }
  }

  var error: KeychainStorageError? { state.withLock { $0.writeError ?? $0.readError } }

  func set(_ value: Value) {
    if let problem = exclusively({ store(value) }) { return note(problem) }
    state.withLock { ($0.readError, $0.writeError) = (nil, nil) }
    for entry in Entries.all(of: Value.self, key) { entry.adopt(value) }
  }

  func follow(_ outlet: Outlet<Value>) -> Listening {
    announcer.follow(outlet) { [self] in (nil, state.withLock { $0.value }) }
  }
}

extension StoredEntry {
  /// One use of a provider at a time, unless it takes care of itself: then it tells of a change while it
  /// makes it, and that leads here again.
  private func exclusively<Result, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    if provider is any WatchedProvider { return try body() }
    return try writing.withLock { _ throws(Failure) in try body() }
  }

  private func note(_ problem: KeychainStorageError) {
    state.withLock { $0.writeError = problem }
    Log.note("keychain \(key)", "\(problem)")
  }

  /// What is stored; nil: nothing. - Throws: `unreadable`, as far as the provider can tell.
  private func stored() throws(KeychainStorageError) -> Data? {
    guard let watched = provider as? any WatchedProvider else { return provider.getData(forKey: key) }
    do { return try watched.secret(forKey: key) } catch { throw .unreadable }
  }

  /// Stores the first value where there is none. nil: there is one now, or none to be stored.
  private func storeFirst() -> KeychainStorageError? {
    do throws(KeychainStorageError) {
      guard try stored() == nil, !value.isNil, let data = try? JSONEncoder().encode(value) else { return nil }
      return provider.setData(data, forKey: key) ? nil : .refused
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

  /// Takes over what is stored now.
  private func look() {
    do throws(KeychainStorageError) {
      let data = try exclusively { () throws(KeychainStorageError) in try stored() }
      let value = try data.map { (data) throws(KeychainStorageError) in try decoded(data) }
      state.withLock { $0.readError = nil }
      if let value { return adopt(value) }
      if Self.isOptional { adopt(state.withLock { $0.first }) }
    } catch {
      state.withLock { $0.readError = error }
    }
  }

  private func adopt(_ value: Value) {
    let isNew = state.withLock { state in
      defer { state.value = value }
      return state.value != value
    }
    if isNew { announcer.tell() }
  }

  private func decoded(_ data: Data) throws(KeychainStorageError) -> Value {
    guard let value = try? JSONDecoder().decode(Value.self, from: data) else { throw .storedTypeDiffers }
    return value
  }

  private static var isOptional: Bool { Value.self is any OptionalProtocol.Type }
}

/// Every property that there is, by key and type.
private enum Entries {
  private struct Name: Hashable {
    let key: String
    let type: ObjectIdentifier
  }

  private struct Member {
    weak var entry: AnyObject?
  }

  private static let known = Guarded<[Name: [Member]]>([:])

  static func add<Value>(_ entry: StoredEntry<Value>, _ key: String) {
    let name = Name(key: key, type: ObjectIdentifier(Value.self))
    known.withLock { known in
      let living = (known[name] ?? []).filter { $0.entry != nil }
      known[name] = living + [Member(entry: entry)]
    }
  }

  static func all<Value>(of type: Value.Type, _ key: String) -> [StoredEntry<Value>] {
    let name = Name(key: key, type: ObjectIdentifier(type))
    return known.withLock { $0[name] ?? [] }.compactMap { $0.entry as? StoredEntry<Value> }
  }
}

/// Any optional.
private protocol OptionalProtocol {
  var hasNoValue: Bool { get }
}

extension Optional: OptionalProtocol {
  fileprivate var hasNoValue: Bool { self == nil }
}

extension Equatable {
  fileprivate var isNil: Bool { (self as? any OptionalProtocol)?.hasNoValue ?? false }
}
