package import Model

/// A key as a Swift value: what the wrappers are made of.
///
/// A value is decoded once for each version that is stored, so that reading costs the same for every type.
package final class LiveValue<Value>: @unchecked Sendable {
  // `decode` is made by this package of functions that may be called from anywhere, and `fallback` never
  // changes.
  package let suite: LiveSuite
  package let key: LiveKey
  package let fallback: Value
  private let decode: (SettingValue) throws -> Value
  private let cache = Guarded<Decoded?>(nil)
  private let writeError = Guarded<(any Error)?>(nil)

  private struct Decoded {
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
  }

  /// The value now; code under Observation hears of its changes.
  package var value: Value { decoded(key.current).value }

  /// Why the last write failed, or else why what is stored does not read as the type; nil: all is well.
  package var error: (any Error)? {
    writeError.withLock { $0 } ?? decoded(key.stored).error
  }

  /// Whether there is a stored value that reads as the type.
  package var isStored: Bool {
    let stored = key.stored
    return stored.value != nil && decoded(stored).error == nil
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
    let last = Guarded<Decoded?>(nil)
    let look: @Sendable () -> Void = { [self] in
      let isNew = last.withLock { last in
        let now = decoded(key.stored)
        if let last, last.version == now.version { return false }
        defer { last = now }
        if let last, Values.areEqual(last.value, now.value) { return false }
        outlet.append(now.value)
        return true
      }
      if isNew { outlet.drain() }
    }
    let listening = key.listen(look)
    look()
    return listening
  }

  private func decoded(_ stored: LiveKey.Stored) -> Decoded {
    if let known = cache.withLock({ $0 }), known.version == stored.version { return known }
    let fresh = fresh(stored)
    cache.withLock { $0 = fresh }
    return fresh
  }

  private func fresh(_ stored: LiveKey.Stored) -> Decoded {
    guard let setting = stored.value else {
      return Decoded(version: stored.version, value: fallback, error: nil)
    }
    do {
      return Decoded(version: stored.version, value: try decode(setting), error: nil)
    } catch {
      note(error)
      return Decoded(version: stored.version, value: fallback, error: error)
    }
  }

  private func note(_ error: any Error) {
    let reason = (error as? StoreError)?.message ?? (error as? SettingMismatch)?.description
    Log.note("\(suite.name) \(key.name)", reason ?? "\(type(of: error))")
  }
}
