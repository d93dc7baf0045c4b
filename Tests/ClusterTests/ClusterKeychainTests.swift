import Cluster
import ClusterInMemory
import EtcdClient
import Model
import Store
import StoreConformance
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1))) struct ClusterKeychainTests {
  @Test(arguments: KeychainConformance.cases + KeychainConformance.history)
  func keepsTheProtocol(_ test: KeychainConformance.Case) throws {
    let store = try TestStore()
    let opened = Mutex<[ClusterKeychain]>([])
    defer { for keychain in opened.withLock({ $0 }) { keychain.close() } }
    try test.run {
      let keychain = try store.keychain()
      opened.withLock { $0.append(keychain) }
      return keychain
    } catchUp: { engine in
      try (engine as? ClusterKeychain)?.catchUp()
    }
  }
}
