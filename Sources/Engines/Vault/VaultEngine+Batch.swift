public import Model
public import SecretMemory
public import Store
import Synchronization
import VaultDatabase
import VaultRecords

extension VaultEngine: BatchKeychain, SpoolingKeychain {
  /// The vault itself.
  public var batches: (any BatchKeychain)? { self }

  /// The vault itself.
  public var spooling: (any SpoolingKeychain)? { self }

  /// Makes the changes in one SQLite transaction; other calls wait meanwhile. - Throws: as the protocol.
  public func apply(
    _ changes: [ItemChange], secret: (Int) throws(StoreError) -> SecretBytes
  ) throws(StoreError) -> [Item] {
    try withSession { session throws(StoreError) in try session.apply(changes, secret: secret) }
  }

  /// A spool of sealed secrets in an unnamed file of the vault's folder.
  public func makeSpool() throws(StoreError) -> any SecretSpool {
    try VaultSpool(directory)
  }

  /// A connection of its own makes the changes, as another process would: reading goes on beside its transaction.
  public func apply(
    _ changes: [ItemChange], from spool: any SecretSpool, progress: () throws(StoreError) -> Void
  ) throws(StoreError) -> [Item] {
    try turns.run { isLocked throws(StoreError) in
      let session = try openSecondSession()
      return try session.apply(changes) { (index) throws(StoreError) in
        guard !isLocked(), state.value == .open else { throw .locked }
        try progress()
        return try spool.secret(at: index)
      }
    }
  }
}

/// The batches that are applied beside other calls, one at a time. A lock ends them.
final class BatchTurns: Sendable {
  private let lockCount = Atomic<UInt64>(0)
  private let turn = Locked(())

  /// Runs `body`, which asks its argument before each step whether the vault was locked since.
  func run<Result>(
    _ body: (_ isLocked: () -> Bool) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    let before = lockCount.load(ordering: .acquiring)
    return try turn.use { _ throws(StoreError) in
      try body { lockCount.load(ordering: .acquiring) != before }
    }
  }

  /// Ends what is under way. Returns when its keys are gone. To be called after the vault itself was locked.
  func end() {
    lockCount.add(1, ordering: .acquiringAndReleasing)
    turn.use { _ in }
  }
}
