import GRDB
public import Model
import SecretMemory
import Store
import VaultDatabase
import VaultRecords

/// The result of opening every secret of a vault.
public struct SecretCheck: Hashable, Sendable {
  /// An item of which a secret does not open.
  public struct Damage: Hashable, Sendable {
    /// The item, without its secret.
    public let item: Item
    /// Why the secret does not open, as a clause.
    public let reason: String
  }

  /// How many secrets opened. Of items with a password of their own, only that the password would be tried.
  public internal(set) var opened = 0
  /// The items of which a secret does not open.
  public internal(set) var damaged: [Damage] = []
  /// Secrets that only other devices can open.
  public internal(set) var ofOtherDevices = 0
  /// Secrets whose item is missing.
  public internal(set) var withoutItem = 0
}

extension VaultEngine {
  /// Opens every secret, each version and attachment too, and gives none.
  ///
  /// - Parameter progress: called with the number of items so far, and of all.
  /// - Returns: the damages, and the counts.
  /// - Throws: `locked` for a vault that is not open, `unreachable`, `system`.
  public func checkSecrets(
    _ progress: (_ done: Int, _ total: Int) -> Void = { _, _ in }
  ) throws(StoreError) -> SecretCheck {
    guard lockState == .open else { throw .locked }
    return try withSession { session throws(StoreError) in try session.checkSecrets(progress) }
  }
}

extension Session {
  fileprivate func checkSecrets(
    _ progress: (_ done: Int, _ total: Int) -> Void
  ) throws(StoreError) -> SecretCheck {
    defer { wipeStack() }
    var check = SecretCheck()
    try connection.read { database in
      let all = try items(database).allKeys()
      for (index, key) in all.enumerated() {
        defer { progress(index + 1, all.count) }
        // A row that does not open is among the problems already.
        guard let row = try? items(database).fetch(key) else { continue }
        var done: Set<SecretPlace> = []
        try self.check(key, row.record, row.record.item, secrets(database), &done, &check)
        guard keys.format >= .two else { continue }
        for revision in row.record.versions {
          do {
            let version = try versions(database).fetch(key, revision)
            try self.check(key, version, version.item, secrets(database), &done, &check)
          } catch StoreError.damaged {
            check.damaged.append(
              .init(item: row.record.item, reason: "an earlier version of it is missing or damaged"))
          }
        }
      }
      check.withoutItem = try countWithoutItem(database)
    }
    return check
  }

  private func check(
    _ key: ItemKey, _ record: ItemRecord, _ item: Item, _ secrets: SecretTable,
    _ done: inout Set<SecretPlace>, _ check: inout SecretCheck
  ) throws {
    for place in record.places(key) where done.insert(place).inserted {
      do {
        try open(place, record, secrets)
        check.opened += 1
      } catch StoreError.accessDenied {
        check.ofOtherDevices += 1
      } catch StoreError.damaged {
        check.damaged.append(.init(item: item, reason: try reason(place, record, secrets)))
      }
    }
  }

  private func open(_ place: SecretPlace, _ record: ItemRecord, _ secrets: SecretTable) throws {
    let sealed = try secrets.fetchSealed(place, record)
    let classKey = try secrets.classKey(of: sealed)
    guard sealed.passwordParameters == nil else {
      _ = try sealed.passwordSeal(under: classKey)
      return
    }
    _ = try sealed.open(under: classKey, nil)
  }

  private func reason(
    _ place: SecretPlace, _ record: ItemRecord, _ secrets: SecretTable
  ) throws -> String {
    guard let row = try? secrets.row(place) else {
      return "its secret is missing, or an older one is in its place"
    }
    let rows = try ClassKeyRow.fetchAll(secrets.database, keys.statements)
    guard rows.contains(where: { $0.id == row.classKey }) else {
      return "the class key of its secret is missing"
    }
    return "its secret is damaged, or that of another item"
  }

  private func countWithoutItem(_ database: Database) throws -> Int {
    let query = try Query(database, "SELECT count(*) FROM secret WHERE uuid NOT IN (SELECT uuid FROM item)")
    return try query.step() ? Int(clamping: query.integer(0)) : 0
  }
}
