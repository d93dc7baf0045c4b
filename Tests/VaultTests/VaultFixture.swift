import Glibc
import Model
import SecretMemory
import Store
import StoreConformance
import Testing

@testable import Vault
@testable import VaultDatabase
@testable import VaultRecords

/// A private folder under TMPDIR with a vault, gone with the value.
final class VaultFixture {
  let root: String
  var directory: String { root + "/vault" }
  var state: String { root + "/state" }
  var database: String { directory + "/vault.db" }
  var key: String { directory + "/vault.key" }
  var anchor: String { state + "/" + (names(in: state).first { $0.hasSuffix(".anchor") } ?? "") }

  init() throws {
    let folder = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
    let name = "\(folder)/keyhole-vault-" + String(UInt64.random(in: .min ... .max), radix: 36)
    try #require(unsafe mkdir(name, 0o700) == 0)
    root = name
  }

  deinit {
    removeAll(root)
  }

  func open() throws -> VaultEngine {
    try VaultEngine(directory: directory, stateDirectory: state, passwordCost: .least)
  }

  func openKeepingVersions() throws -> VaultEngine {
    try VaultEngine(
      directory: directory, stateDirectory: state, passwordCost: .least, retention: .standard)
  }

  func openReadingSingleItems() throws -> VaultEngine {
    try VaultEngine(
      directory: directory, stateDirectory: state, reading: .singleItems, passwordCost: .least)
  }

  /// The same vault on another device: of another machine, with a state folder of its own.
  func openElsewhere() throws -> VaultEngine {
    let machine = MachineIdentity(machine: Array("another machine".utf8), user: 1000)
    return try VaultEngine(
      VaultDirectory(directory, state: root + "/elsewhere", machine: machine), .items, .least)
  }
}

/// rm -r.
func removeAll(_ path: String) {
  for name in names(in: path) { removeAll(path + "/" + name) }
  unsafe unlink(path)
  unsafe rmdir(path)
}

func names(in path: String) -> [String] {
  guard let folder = unsafe opendir(path) else { return [] }
  defer { unsafe closedir(folder) }
  var names: [String] = []
  while let entry = unsafe readdir(folder) {
    let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) {
      unsafe $0.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
    }
    if name != ".", name != ".." { names.append(name) }
  }
  return names.sorted()
}

extension VaultEngine {
  /// Adds many items in not so many words.
  func fill(_ count: Int, _ secret: borrowing SecretBytes) throws {
    for index in 0..<count {
      var item = KeychainSamples.generic(
        ExactString("service \(index / 10)"), ExactString("account \(index)"))
      item.attributes = ["comment": Array("a comment".utf8)]
      _ = try add(item, secret: secret)
    }
  }
}
