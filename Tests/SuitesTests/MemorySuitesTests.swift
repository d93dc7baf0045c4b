import Store
import StoreConformance
import Testing

@Suite struct MemorySuitesTests {
  @Test(arguments: SuiteEngineConformance.cases)
  func keepsTheProtocol(_ test: SuiteEngineConformance.Case) throws {
    try test.run(MemorySuites())
  }
}
