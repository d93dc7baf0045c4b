import FoundationEssentials
import GRDB
import Glibc
import Model
import SecretMemory
import Store
import Testing
import Vault

/// A vault of which a file or a row was changed opens or is refused; no secret that it gives is another than was stored.
@Suite(.serialized) final class VaultMutationTests {
  private let folder = SuiteFolder.make()
  private let secret = Array("a secret of a known value".utf8)
  private let files = ["vault.db", "vault.key"]
  private let whole: [[UInt8]]

  init() throws {
    try Self.makeVault(folder + "/v", secret)
    let vault = folder + "/v"
    whole = files.map { Corpus.file("\(vault)/\($0)") }
    try #require(whole.allSatisfy { !$0.isEmpty })
  }

  deinit { SuiteFolder.remove(folder) }

  @Test(.enabled(if: FuzzRun.isChosen("vault-files")))
  func noDamagedFileEndsTheProcess() throws {
    var mutator = Mutator(seed: FuzzRun.seed)
    FuzzRun.run("vault-files", count: 60) { number in
      let isChanged = mutator.below(4) > 0 ? "vault.db" : "vault.key"
      read(copy(number) { name, bytes in name == isChanged ? damaged(bytes, &mutator) : bytes })
    }
  }

  @Test(.enabled(if: FuzzRun.isChosen("vault-rows")))
  func noDamagedRowEndsTheProcess() throws {
    var mutator = Mutator(seed: FuzzRun.seed)
    try FuzzRun.run("vault-rows", count: 60) { number in
      let copy = copy(number) { _, bytes in bytes }
      for _ in 0...mutator.below(3) { try damageRow(copy, &mutator) }
      read(copy)
    }
  }

  /// Its size stays in half of the cases, so that more than the size is looked at.
  private func damaged(_ bytes: [UInt8], _ mutator: inout Mutator) -> [UInt8] {
    guard mutator.below(2) == 0 else { return mutator.mutated(bytes, with: bytes) }
    var damaged = bytes
    for _ in 0...mutator.below(8) { damaged[mutator.below(damaged.count)] = UInt8(mutator.below(256)) }
    return damaged
  }

  private func copy(_ number: Int, _ change: (String, [UInt8]) -> [UInt8]) -> String {
    let copy = "\(folder)/c\(number)"
    unsafe mkdir(copy, 0o700)
    for (name, bytes) in zip(files, whole) { Corpus.write(change(name, bytes), to: "\(copy)/\(name)") }
    return copy
  }

  // MARK: Rows

  private static let columns: [(table: String, key: String, names: [String])] = [
    ("vault", "id", ["store", "critical", "features"]),
    ("slot", "id", ["id", "kind", "parameters", "public", "commitment", "sealed", "checksum"]),
    ("class_key", "id", ["id", "class", "kind", "device", "sealed"]), ("manifest", "id", ["sealed"]),
    ("item", "uuid", ["uuid", "tag", "revision", "sealed"]),
    ("secret", "uuid", ["uuid", "part", "revision", "class_key", "kind", "parameters", "wrapped", "sealed"]),
  ]
  private static let numbers: [Int64] = [0, 1, -1, 2, 3, 5, 6, 255, 256, 1 << 32, .max, .min]

  private func damageRow(_ folder: String, _ mutator: inout Mutator) throws {
    let (table, key, names) = Self.columns[mutator.below(Self.columns.count)]
    let name = names[mutator.below(names.count)]
    let database = try DatabaseQueue(path: folder + "/vault.db")
    let row = mutator.below(3)
    let number = Self.numbers[mutator.below(Self.numbers.count)]
    try database.write { database in
      let found = try Row.fetchOne(
        database, sql: "SELECT \(key), \(name) FROM \(table) ORDER BY \(key) LIMIT 1 OFFSET ?",
        arguments: [row])
      guard let found else { return }
      var value: DatabaseValue = number.databaseValue
      if case .blob(let blob) = (found[1] as DatabaseValue).storage {
        value = Data(mutator.mutated(Array(blob), with: Array(blob))).databaseValue
      }
      // A constraint may refuse it.
      try? database.execute(
        sql: "UPDATE \(table) SET \(name) = ? WHERE \(key) = ?",
        arguments: [value, found[0] as DatabaseValue])
    }
    try database.close()
  }

  // MARK: The vault

  private static func makeVault(_ folder: String, _ secret: [UInt8]) throws {
    unsafe mkdir(folder, 0o700)
    let vault = try VaultEngine(directory: folder, stateDirectory: folder + "/state")
    let moment = Timestamp(seconds: 1_700_000_000)
    for account in ["a", "b", "c"] {
      var bytes = try SecretBytes()
      try unsafe secret.withUnsafeBytes { try unsafe bytes.append($0) }
      let identity = ItemIdentity.generic(service: "s", account: ExactString(account))
      let item = Item(id: ItemID(rawValue: ""), identity: identity, created: moment, modified: moment)
      _ = try vault.add(item, secret: bytes)
    }
  }

  private func read(_ folder: String) {
    defer { SuiteFolder.remove(folder) }
    guard let vault = try? VaultEngine(directory: folder, stateDirectory: folder + "/state"),
      let items = try? vault.items()
    else { return }
    for item in items {
      guard let bytes = try? vault.secret(of: item.id) else { continue }
      #expect(unsafe bytes.withUnsafeBytes { unsafe Array($0) } == secret)
    }
    _ = vault.problems()
  }
}
