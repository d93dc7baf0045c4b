package import Model
import Synchronization

/// A key as a Swift value: what the wrappers are made of.
///
/// A value is decoded once for each version that is stored, so that reading costs the same for every type.
package final class LiveValue<Value>: @unchecked Sendable {
  // `decode` is made by this package of functions that may be called from anywhere, `fallback` never changes,
  // and the rest is behind locks.
  package let suite: LiveSuite
  package let key: LiveKey
  package let fallback: Value
  private let decode: (SettingValue) throws -> Value
  private let mutex = Mutex(())
  /// The value that was decoded last; used under `mutex` only.
  private var cache: Decoded
  private let writeError = Guarded<(any Error)?>(nil)

  private struct Decoded {
    /// The key's generation when it was found to hold.
    var generation: UInt64
    let version: UInt64
    let value: Value
    let error: (any Error)?
  }

  /// While nothing is stored, and where what is stored does not read as the type, the value is `fallback`.
  /// `decode` reads a stored value; its error is what `error` has then.
  package init(
    _ suite: Suite, _ key: String, fallback: Value, decode: @escaping (SettingValue) throws -> Value
  ) {
    self.suite = suite.live
    self.key = suite.live.key(key)
    self.fallback = fallback
    self.decode = decode
    cache = Decoded(generation: .max, version: .max, value: fallback, error: nil)
  }

  /// The value now; code under Observation is notified of its changes.
  package var value: Value {
    key.access()
    // Asked before the cache is: what is newer than this number says is found by the next read.
    let generation = key.generation
    mutex._unsafeLock()
    if cache.generation == generation {
      defer { mutex._unsafeUnlock() }
      return cache.value
    }
    mutex._unsafeUnlock()
    return decoded().value
  }

  /// Why the last write failed, or else why what is stored does not read as the type; nil: all is well.
  package var error: (any Error)? {
    writeError.withLock { $0 } ?? decoded().error
  }

  /// Whether there is a stored value that reads as the type.
  package var isStored: Bool {
    key.stored.value != nil && decoded().error == nil
  }

  /// Stores what `encode` gives, or with nil removes the key. What fails is logged and kept in `error`.
  package func set(_ encode: () throws -> SettingValue?) {
    do {
      try key.set(encode())
      writeError.withLock { $0 = nil }
    } catch {
      note(error)
      writeError.withLock { $0 = error }
    }
  }

  /// Reads the file again, without waiting for the news of it.
  package func reload() {
    suite.refresh()
  }

  /// Every value from the present one on, each once and in order.
  package func follow(_ outlet: Outlet<Value>) -> Listening {
    key.follow(outlet) { [self] in
      let now = decoded()
      return (now.version, now.value)
    }
  }

  /// The value as it is stored now, decoded again only where it has changed.
  private func decoded() -> Decoded {
    let generation = key.generation
    let stored = key.stored
    if let known = cached(stored.version, generation) { return known }
    let fresh = fresh(stored, generation)
    mutex._unsafeLock()
    defer { mutex._unsafeUnlock() }
    cache = fresh
    return fresh
  }

  private func cached(_ version: UInt64, _ generation: UInt64) -> Decoded? {
    mutex._unsafeLock()
    defer { mutex._unsafeUnlock() }
    guard cache.version == version else { return nil }
    cache.generation = generation
    return cache
  }

  private func fresh(_ stored: LiveKey.Stored, _ generation: UInt64) -> Decoded {
    func decoded(_ value: Value, _ error: (any Error)? = nil) -> Decoded {
      Decoded(generation: generation, version: stored.version, value: value, error: error)
    }
    guard let setting = stored.value else { return decoded(fallback) }
    do {
      return decoded(try decode(setting))
    } catch {
      note(error)
      return decoded(fallback, error)
    }
  }

  private func note(_ error: any Error) {
    Log.note("\(suite.name) \(key.name)", error)
  }
}

/// Two are equal that read alike; where they are kept does not count.
extension LiveValue: Equatable where Value: Equatable {
  package static func == (left: LiveValue, right: LiveValue) -> Bool {
    left.key.name == right.key.name && left.value == right.value
  }
}

extension LiveValue: Hashable where Value: Hashable {
  package func hash(into hasher: inout Hasher) {
    hasher.combine(key.name)
    hasher.combine(value)
  }
}
