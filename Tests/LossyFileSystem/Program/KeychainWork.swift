package import Model
import SecretMemory
import Store
import Vault
import VaultRecords

/// Does the steps in a vault, and reads the results.
package final class KeychainWork {
  private let directory: String
  private let state: String
  private var engine: VaultEngine
  private var items: [String: ItemID] = [:]
  private var passwords: [String: String] = [:]

  /// `root` has the folders `data` and `state`; the vault's own are made.
  package init(root: String) throws(StoreError) {
    directory = root + "/data/keyhole"
    state = root + "/state/keyhole"
    engine = try Self.open(directory, state)
  }

  /// With the one of the steps' passphrases that it takes.
  private static func open(_ directory: String, _ state: String) throws(StoreError) -> VaultEngine {
    let engine = try VaultEngine(directory: directory, stateDirectory: state, passwordCost: .least)
    for passphrase in KeychainSteps.passphrases where engine.lockState != .open && !passphrase.isEmpty {
      do throws(StoreError) { try engine.unlock(secret(Array(passphrase.utf8))) } catch {
        guard error == .rejected else { throw error }
      }
    }
    return engine
  }

  package func perform(_ step: KeychainStep) throws(StoreError) {
    switch step {
    case .add(let account, let entry): try add(account, entry)
    case .rewrite(let account, let secret): try rewrite(account, secret)
    case .update(let accounts, let comment):
      _ = try engine.update(ids(accounts)) { $0.attributes["comment"] = comment }
    case .rename(let account, let name): try rename(account, name)
    case .remove(let accounts):
      try engine.remove(ids(accounts))
      for account in accounts { items[account] = nil }
    case .changePassword(let account, let password):
      guard let id = ids([account]).first else { return }
      try engine.changePassword(
        of: id, from: Self.password(passwords[account]), to: Self.password(password))
      passwords[account] = password
    case .changePassphrase(let present, let new):
      let passphrase = try Self.secret(Array(new.utf8))
      try engine.change(
        to: new.isEmpty ? .keyFile : .passphraseAndKeyFile, passphrase,
        present: Self.secret(Array(present.utf8)), cost: .least)
    case .reopen: engine = try Self.open(directory, state)
    }
  }

  /// All that the vault holds, secrets too.
  package func contents() throws(StoreError) -> KeychainState {
    var contents: KeychainState = [:]
    for item in try engine.items() {
      guard case .generic(_, let account) = item.identity else { continue }
      let password = try password(of: item)
      let secret = try
        (password.map { password throws(StoreError) in try engine.using(Self.password(password)) } ?? engine)
        .secret(of: item.id)
      contents[account.string] = KeychainEntry(
        secret: unsafe secret.withUnsafeBytes { unsafe Array($0) },
        comment: item.attributes["comment"] ?? [], accessibility: item.accessibility,
        password: password)
    }
    return contents
  }

  /// The problems that the engine reports.
  package func problems() -> [String] {
    engine.problems().map { "\($0.subject): \($0.reason)" }
  }
}

extension KeychainWork {
  private func ids(_ accounts: [String]) -> [ItemID] {
    accounts.compactMap { items[$0] }
  }

  /// Which of the steps' passwords opens an item; nil: it takes none.
  private func password(of item: Item) throws(StoreError) -> String? {
    guard item.access.needsPassword else { return nil }
    for password in KeychainSteps.passwords {
      do throws(StoreError) {
        try engine.check(Self.password(password), of: item.id)
        return password
      } catch {
        guard error == .rejected else { throw error }
      }
    }
    throw .rejected
  }

  private static func password(_ text: String?) throws(StoreError) -> ItemPassword {
    ItemPassword(try secret(Array((text ?? "").utf8)))
  }

  private func add(_ account: String, _ entry: KeychainEntry) throws(StoreError) {
    let now = Timestamp(seconds: 0)
    let item = Item(
      id: ItemID(rawValue: ""), identity: Self.identity(account), created: now, modified: now,
      accessibility: entry.accessibility, access: entry.password == nil ? [] : [.applicationPassword],
      attributes: ["comment": entry.comment])
    let secret = try Self.secret(entry.secret)
    passwords[account] = entry.password
    let engine: any KeychainEngine =
      try entry.password == nil ? engine : engine.using(Self.password(entry.password))
    items[account] = try engine.add(item, secret: secret).id
  }

  private func rewrite(_ account: String, _ secret: [UInt8]) throws(StoreError) {
    for id in ids([account]) {
      _ = try engine.rewrite(id, readingSecret: false) { _, value throws(StoreError) in
        value = try Self.secret(secret)
      }
    }
  }

  private func rename(_ account: String, _ name: String) throws(StoreError) {
    _ = try engine.update(ids([account])) { $0.identity = Self.identity(name) }
    items[name] = items.removeValue(forKey: account)
  }

  private static func identity(_ account: String) -> ItemIdentity {
    .generic(service: "power loss", account: ExactString(account))
  }

  private static func secret(_ bytes: [UInt8]) throws(StoreError) -> SecretBytes {
    guard var secret = try? SecretBytes(count: bytes.count) else { throw .outOfMemory }
    unsafe secret.withUnsafeMutableBytes { unsafe $0.copyBytes(from: bytes) }
    return secret
  }
}
