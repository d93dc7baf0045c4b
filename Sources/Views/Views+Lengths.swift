public import Model
import Platform
import SecretMemory
import Store
import Synchronization
import ViewFormats

/// The part of stat(2) that a view decides.
public struct ViewStatus: Sendable {
  /// In bytes; where `isStale`, as it was when it was last known.
  public var size: Int
  /// When the view, or an item or a setting of it, changed last.
  public var modified: Timestamp
  /// Whether the length can't be known now: an item is missing or locked, or opens only with a password of its own.
  public var isStale: Bool
}

// The length of a view is kept sealed beside its template, with a digest of what it was computed of. So it is exact as long as
// that is as it was, and is computed again where the keys are there; no person is asked for it.
extension Views {
  /// The size, the time and whether the size is the present one. It asks no person.
  public func status(of view: View) throws(StoreError) -> ViewStatus {
    try whileUnchanged(view) { (view) throws(StoreError) in try currentStatus(of: view) }
  }

  private func currentStatus(of view: View) throws(StoreError) -> ViewStatus {
    let states = try states(of: view)
    let basis = Self.basis(of: view.document, states)
    let modified = Self.modified(view, states)
    // The length that was rendered last counts first: a change by another process may not be reported yet.
    let last = known.withLock { $0[view.document.id]?.length }
    if let last, last.basis == basis, let size = last.length {
      return ViewStatus(size: size, modified: modified, isStale: false)
    }
    if let sealed = view.sealedLength, sealed.basis == basis {
      return ViewStatus(size: sealed.length, modified: modified, isStale: false)
    }
    if isMeasured(view, states, basis) {
      if let length = length(of: view, basis) {
        return ViewStatus(size: length, modified: modified, isStale: false)
      }
    } else {
      measureLater(view)
    }
    return ViewStatus(size: view.sealedLength?.length ?? 0, modified: modified, isStale: true)
  }

  /// When the view, or an item or a setting of it, changed last.
  public func modified(of view: View) throws(StoreError) -> Timestamp {
    Self.modified(view, try states(of: view))
  }

  private static func modified(_ view: View, _ states: [SourceState?]) -> Timestamp {
    states.compactMap(\.?.modified).reduce(view.document.modified, max)
  }

  /// Whether its length is known, or may be computed at once.
  private func isMeasured(_ view: View, _ states: [SourceState?], _ basis: [UInt8]) -> Bool {
    guard measuring.withLock({ $0 }) != .atOnce else { return true }
    let size = states.compactMap(\.?.size).reduce(view.document.size, &+)
    return size <= Self.mostAtOnce || known.withLock { $0[view.document.id]?.length?.basis == basis }
  }

  /// Computes a length on another thread, one thread for each view.
  private func measureLater(_ view: View) {
    let id = view.document.id
    let isUnderWay = known.withLock { known in
      defer { known[id, default: Known()].isBeingMeasured = true }
      return known[id]?.isBeingMeasured == true
    }
    guard !isUnderWay else { return }
    Background.run { [self] in
      if measuring.withLock({ $0 }) == .later(sealing: true) {
        sealLengths(of: [view])
      } else if let basis = try? basis(of: view) {
        _ = length(of: view, basis)
      }
      known.withLock { $0[id]?.isBeingMeasured = false }
    }
  }

  /// From now on the length of a large view is computed on another thread, as a mount's have to answer: until it is known, `status` has
  /// the last one. `sealing`: it is kept then.
  public func measureLargeViewsLater(sealing: Bool) { measuring.withLock { $0 = .later(sealing: sealing) } }

  /// nil: it can't be known.
  private func length(of view: View, _ basis: [UInt8]) -> Int? {
    if let last = known.withLock({ $0[view.document.id]?.length }), last.basis == basis,
      last.length != nil || keychain.engine.locking.lockState == .open
    {
      return last.length
    }
    let length = try? measure(view)
    // Where a lock is the reason, the next one may know it.
    guard length != nil || keychain.engine.locking.lockState == .open else { return nil }
    known.withLock { $0[view.document.id, default: Known()].length = (length, basis) }
    return length
  }

  private func measure(_ view: View) throws(StoreError) -> Int {
    let template = try template(of: view)
    var failure: StoreError?
    do throws(ViewError) {
      return try template.length { (slot, body) throws(ViewError) in
        try lend(slot, &failure, body) { (path) throws(StoreError) in try valueToMeasure(at: path) }
      }
    } catch { throw StoreError(error, after: failure) }
  }

  func valueToMeasure(at path: String) throws(StoreError) -> SecretBytes {
    switch try paths.source(at: path) {
    case .item(let identity):
      guard let item = try keychain.item(with: identity) else { throw .notFound }
      return try keychain.secretToMeasure(item)
    case .setting(let suite, let key): return try text(ofSetting: key, in: suite)
    }
  }

  /// The length of a file that was rendered.
  func note(_ length: Int, _ basis: [UInt8], of view: View) {
    known.withLock { $0[view.document.id, default: Known()].length = (length, basis) }
  }

  /// Keeps the lengths of views that are known, or can be computed, and are not the ones that are kept. It may take as long as
  /// a commit for each.
  public func sealLengths(of views: [View]) {
    for view in views.map(\.name) {
      guard let view = try? self.view(view), known.withLock({ ($0[view.document.id]?.writes ?? 0) == 0 }),
        let basis = try? basis(of: view), view.sealedLength?.basis != basis,
        let length = length(of: view, basis)
      else { continue }
      let derived = [Property.length: Array("\(length)".utf8), Property.basis: basis]
      try? keychain.keep(derived: derived, of: view.document)
    }
  }

  /// The same of all views, where the vault is open: before it is locked. It asks no other process. The lock does not wait for the
  /// length of a large view that is being computed.
  public func sealAllLengths() {
    guard areSupported, !keychain.isServedElsewhere, keychain.engine.locking.lockState == .open,
      let views = try? all()
    else { return }
    sealLengths(
      of: views.filter { view in
        guard let states = try? states(of: view) else { return false }
        return isMeasured(view, states, Self.basis(of: view.document, states))
      })
  }

  /// The bytes of values and template of a view whose length is computed while a program waits for it.
  private static let mostAtOnce = 64 * 1024

  /// The thread that computes the lengths of large views.
  enum Measuring: Equatable {
    /// The caller's.
    case atOnce
    /// One of their own.
    case later(sealing: Bool)
  }
}

/// The state of a source, by which a change of its value shows.
struct SourceState: Hashable {
  var modified: Timestamp
  /// Of its file, in bytes.
  var size: Int
}

extension Views {
  /// The states of all that a view refers to, in that order; nil: it is missing.
  func states(of view: View) throws(StoreError) -> [SourceState?] {
    var states: [SourceState?] = []
    states.reserveCapacity(view.references.count)
    for path in view.references { states.append(try state(at: path)) }
    return states
  }

  func state(at path: String) throws(StoreError) -> SourceState? {
    switch try? paths.source(at: path) {
    case .item(let identity)?:
      guard let item = try keychain.item(with: identity) else { return nil }
      return SourceState(modified: item.modified, size: item.size)
    case .setting(let suite, let key)?:
      guard let entry = try? settings.suite(suite).fetch()?.entries[key] else { return nil }
      return SourceState(modified: entry.modified, size: entry.size)
    case nil: return nil
    }
  }

  func basis(of view: View) throws(StoreError) -> [UInt8] {
    Self.basis(of: view.document, try states(of: view))
  }

  static func basis(of document: SealedDocument, _ states: [SourceState?]) -> [UInt8] {
    basis(modified: document.modified, dialect: document.properties[Property.dialect], states)
  }

  static func basis(modified: Timestamp, dialect: [UInt8]?, _ states: [SourceState?]) -> [UInt8] {
    var text = "\(modified.seconds).\(modified.nanoseconds) "
    for state in states {
      guard let state else {
        text += "- "
        continue
      }
      text += "\(state.modified.seconds).\(state.modified.nanoseconds),\(state.size) "
    }
    return Array(SHA256Hasher.hash(Array(text.utf8) + (dialect ?? [])).prefix(16))
  }
}
