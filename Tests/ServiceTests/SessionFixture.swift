import InMemory
import KeychainSelection
import Model
import Platform
import SecretMemory
import Store
import Tree

@testable import Service

/// The tree as a command has it, on a folder of property lists and a keychain in memory.
final class SessionFixture {
  private let folder: TemporaryFolder
  let session: TreeSession
  let keychain = MemoryKeychain()

  init() throws {
    folder = try TemporaryFolder()
    let path = folder.path
    let places = StoragePaths(
      home: path, configuration: path, vault: path + "/v", state: path + "/s", runtime: path + "/r")
    let opened = OpenedKeychain(engine: keychain, explanation: "")
    let stores = try Stores(places, opened, KeychainConfiguration(choice: .none))
    session = TreeSession(stores, sayingTrustIn: nil)
  }

  func write(_ path: String, _ text: String) throws {
    try session.write(text.utf8.span, to: TreePath(path))
  }

  func read(_ path: String) throws -> String {
    var text = ""
    try session.read(TreePath(path)) { text = String(decoding: $0.array, as: UTF8.self) }
    return text
  }

  func exists(_ path: String) throws -> Bool {
    try session.existingNode(at: TreePath(path)) != nil
  }
}

/// The reason of the failure that `body` throws; nil: it throws none.
func reason(_ body: () throws -> Void) -> String? {
  do {
    try body()
    return nil
  } catch {
    return (error as? Failure)?.reason ?? "\(error)"
  }
}
