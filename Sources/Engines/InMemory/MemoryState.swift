import Model
import SecretMemory
import Store
import Synchronization

/// An item with its secret. Entries never change, so that drafts can share them.
final class Entry {
  final class Box {
    let secret: SecretBytes

    init(_ secret: consuming SecretBytes) {
      self.secret = secret
    }
  }

  let item: Item
  /// The item's own password; nil: it has none.
  let password: [UInt8]?
  /// nil: the item has no `otpauth:` URI.
  let otpauth: Box?
  private let box: Box

  var secret: SecretBytes {
    _read { yield box.secret }
  }

  init(_ item: Item, _ secret: consuming SecretBytes, _ password: [UInt8]?, otpauth: Box? = nil) {
    (self.item, self.password, self.otpauth) = (item, password, otpauth)
    box = Box(secret)
  }

  /// With another `otpauth:` URI.
  init(_ item: Item, _ other: Entry, otpauth: Box?) {
    (self.item, password, self.otpauth) = (item, other.password, otpauth)
    box = other.box
  }

  init(_ item: Item, sharing other: Entry) {
    (self.item, password, otpauth) = (item, other.password, other.otpauth)
    box = other.box
  }
}

final class State {
  var entries: [ItemID: Entry] = [:]
  /// Which items each version has changed, and by which engine: version 1 first.
  private(set) var changes: [(items: [ItemID], engine: Int)] = []
  var version: Int { changes.count }
  var failure: StoreError?
  var lock = KeychainLock.open
  var passphrase: [UInt8]?
  private var last = 0

  private var engines = 0

  /// The number of an engine on these items.
  func nextEngine() -> Int {
    engines += 1
    return engines
  }

  /// Takes over a draft of all items.
  func replace(_ draft: [ItemID: Entry], by engine: Int) {
    let ids = Set(entries.keys).union(draft.keys).filter { entries[$0] !== draft[$0] }
    changes.append((Array(ids), engine))
    entries = draft
  }

  func nextID() -> ItemID {
    last += 1
    return ItemID(rawValue: "memory-\(last)")
  }
}

/// The state behind a lock; bodies may be the caller's, which a `Mutex` would not take.
final class Shared {
  private let state = State()
  private let mutex = Mutex(())

  func use<Result: ~Copyable, Failure: Error>(
    _ body: (State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    mutex._unsafeLock()
    defer { mutex._unsafeUnlock() }
    return try body(state)
  }
}

// `state` is only ever used while `mutex` is held.
extension Shared: @unchecked Sendable {}
