import Model
import Store
import StoreConformance
import Suites
import Testing

@Suite(.timeLimit(.minutes(1))) struct PropertyListFolderTests {
  let sandbox = SuiteSandbox()

  @Test(arguments: SuiteEngineConformance.cases)
  func keepsTheProtocol(_ test: SuiteEngineConformance.Case) throws {
    try test.run(sandbox.engine())
  }
}
