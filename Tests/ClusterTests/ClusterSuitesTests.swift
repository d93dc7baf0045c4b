import Cluster
import ClusterInMemory
import EtcdClient
import Model
import Store
import StoreConformance
import Testing

@Suite(.timeLimit(.minutes(1))) struct ClusterSuitesTests {
  @Test(arguments: SuiteEngineConformance.cases)
  func keepsTheProtocol(_ test: SuiteEngineConformance.Case) throws {
    let store = try TestStore()
    let suites = try store.suites()
    defer { suites.close() }
    try test.run(suites)
  }
}
