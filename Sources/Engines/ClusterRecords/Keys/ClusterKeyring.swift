package import Crypto
package import Model
import SecretMemory
import Synchronization
package import VaultRecords

/// The keys of a store in a cluster: those that are derived from each master key that is in use, and the index key.
///
/// Each rotation makes a new master key, and begins an epoch. May be used from any thread.
package final class ClusterKeyring: Sendable {
  /// 16 random bytes that everything is bound to.
  package let store: ItemKey

  private final class Box {
    let key: StoredKey

    init(_ key: SymmetricKey) throws { self.key = try StoredKey(key) }
  }

  private struct Epoch {
    var master: Box?
    var derived: [ClusterKeyPurpose: Box] = [:]
  }

  private struct State {
    var epochs: [UInt32: Epoch] = [:]
    var present: UInt32 = 0
    /// Records of earlier epochs are refused.
    var oldest: UInt32 = 0
    var index: Box?
    var sum: Box?
  }

  // A Mutex would ask for Sendable boxes.
  private let mutex = Mutex(())
  private nonisolated(unsafe) var state = State()

  package init(store: ItemKey) { self.store = store }

  private func use<Result>(_ body: (inout State) throws -> Result) throws(StoreError) -> Result {
    mutex._unsafeLock()
    defer { mutex._unsafeUnlock() }
    do { return try unsafe body(&state) } catch { throw StoreError(cluster: error) }
  }

  /// The epoch in which is written; 0: no master key was ever known.
  package var epoch: UInt32 { (try? use { $0.present }) ?? 0 }

  /// Whether there may be records of epochs before the present one; false where that is not known.
  package var hasEarlierKeys: Bool { (try? use { $0.oldest > 0 && $0.oldest < $0.present }) ?? false }

  /// Whether the master key is known.
  package var isOpen: Bool { (try? use { $0.epochs[$0.present]?.master != nil }) ?? false }

  /// Whether names and attributes can be read.
  package var isReadable: Bool { (try? use { !$0.epochs.isEmpty && $0.index != nil }) ?? false }

  /// Takes the master key of an epoch, and with it all that is derived from it.
  package func add(_ master: SymmetricKey, epoch number: UInt32) throws(StoreError) {
    try use { state in
      var epoch = Epoch(master: try Box(master))
      for purpose in Self.purposes {
        epoch.derived[purpose] = try Box(ClusterDerivation.key(master, store, purpose.name))
      }
      state.epochs[number] = epoch
      state.present = max(state.present, number)
    }
  }

  private static let purposes: [ClusterKeyPurpose] = [
    .settings, .items, .ring, .members, .secrets(.whenUnlocked), .secrets(.afterFirstUnlock),
  ]

  /// Takes the index key, and refuses records of epochs before `oldest` from now on.
  package func setRing(_ ring: KeyRing) throws(StoreError) {
    for (epoch, master) in ring.masters { try add(master, epoch: epoch) }
    try use { state in
      state.index = try Box(ring.index)
      state.sum = try Box(ClusterDerivation.key(ring.index, store, "sum"))
      state.oldest = ring.oldest
      for epoch in state.epochs.keys where epoch < ring.oldest { state.epochs[epoch] = nil }
    }
  }

  /// Drops what a lock takes: the master keys, and the keys of the secrets that are not to be read meanwhile.
  package func lock() {
    _ = try? use { state in
      for epoch in state.epochs.keys {
        state.epochs[epoch]?.master = nil
        for purpose in Self.purposes where !purpose.survivesLock {
          state.epochs[epoch]?.derived[purpose] = nil
        }
      }
    }
  }

  /// Whether the keys of an epoch are not in use any more.
  package func isGivenUp(_ epoch: UInt32) -> Bool { (try? use { epoch < $0.oldest }) ?? false }

  /// - Throws: `locked`; `damaged` for an epoch that is over or unknown.
  package func key(_ purpose: ClusterKeyPurpose, epoch: UInt32) throws(StoreError) -> SymmetricKey {
    try use { state in
      guard !state.epochs.isEmpty else { throw StoreError.locked }
      // Another device has made new keys.
      guard epoch <= state.present else { throw StoreError.locked }
      guard epoch >= state.oldest, let keys = state.epochs[epoch] else {
        throw StoreError.damaged(
          what: "a record of the cluster, which is sealed under keys that are not in use,")
      }
      guard let key = keys.derived[purpose] else { throw StoreError.locked }
      return key.key.symmetric()
    }
  }

  /// The present master key. - Throws: `locked`.
  package func copyMaster() throws(StoreError) -> SymmetricKey {
    try use { state in
      guard let master = state.epochs[state.present]?.master else { throw StoreError.locked }
      return master.key.symmetric()
    }
  }

  /// The ring as it is to be stored. - Throws: `locked`.
  package func copyRing() throws(StoreError) -> KeyRing {
    try use { state in
      guard let index = state.index else { throw StoreError.locked }
      var masters: [UInt32: SymmetricKey] = [:]
      for (number, epoch) in state.epochs where number != state.present {
        guard let master = epoch.master else { throw StoreError.locked }
        masters[number] = master.key.symmetric()
      }
      return KeyRing(index: index.key.symmetric(), oldest: state.oldest, masters: masters)
    }
  }

  /// The id of a key's entry in a suite: equal for equal names, and it tells nothing else. - Throws: `locked`.
  package func tag(of name: ExactString, in suite: ItemKey) throws(StoreError) -> ItemKey {
    var writer = FieldWriter(capacity: 64)
    writer.put(1, suite)
    writer.put(2, name.utf8)
    let code = try use { state in
      guard let index = state.index else { throw StoreError.locked }
      return HMAC<SHA256>.authenticationCode(for: writer.bytes, using: index.key.symmetric())
    }
    let bytes = Array(code.prefix(16))
    return try ItemKey(bytes.span).orDamaged()
  }

  /// The function that makes the terms of sums, for many at once. - Throws: `locked`.
  package func terms() throws(StoreError) -> DigestTerms {
    try use { state in
      guard let sum = state.sum else { throw StoreError.locked }
      return DigestTerms(HMAC<SHA256>(key: sum.key.symmetric()))
    }
  }
}

/// The terms of the sums of collections.
package struct DigestTerms {
  private let code: HMAC<SHA256>

  init(_ code: HMAC<SHA256>) { self.code = code }

  /// The term of an entry as a commit has left it.
  package func term(_ key: [UInt8], _ state: EntryState) throws(StoreError) -> SetDigest {
    var writer = FieldWriter(capacity: key.count + 32)
    writer.put(raw: state.version)
    writer.put(raw: state.operation.number.high)
    writer.put(raw: state.operation.number.low)
    writer.put(raw: key)
    var code = code
    code.update(data: writer.bytes)
    let bytes = unsafe code.finalize().withUnsafeBytes { unsafe Array($0) }
    return try SetDigest(bytes.span)
  }
}

/// Which state of an entry is stored.
package struct EntryState: Hashable, Sendable {
  /// How often the key was changed since it was created, from 1, as the cluster counts.
  package var version: UInt64
  /// The commit that made it.
  package var operation: Operation

  package init(version: UInt64, operation: Operation) {
    (self.version, self.operation) = (version, operation)
  }
}

/// The keys that are kept sealed under the present master key.
package struct KeyRing {
  /// The key of tags and sums. It outlasts rotations.
  package var index: SymmetricKey
  /// The first epoch of which there may be records.
  package var oldest: UInt32
  /// The master keys of earlier epochs of which there are records.
  package var masters: [UInt32: SymmetricKey]

  package init(index: SymmetricKey, oldest: UInt32, masters: [UInt32: SymmetricKey] = [:]) {
    (self.index, self.oldest, self.masters) = (index, oldest, masters)
  }
}

enum ClusterDerivation {
  /// HKDF (RFC 5869) with SHA-256.
  static func key(_ input: SymmetricKey, _ store: ItemKey, _ name: String) -> SymmetricKey {
    HKDF<SHA256>.deriveKey(
      inputKeyMaterial: input, salt: store.bytes, info: ClusterFormat.info(name), outputByteCount: 32)
  }
}

extension StoreError {
  /// The text of swift-crypto's error stays inside.
  package init(cluster error: any Error) {
    switch error {
    case let error as StoreError: self = error
    case is SecretMemoryError: self = .outOfMemory
    default: self = .damaged(what: "a record of the cluster")
    }
  }
}
