import Model
import Store
import StoreConformance
import Testing

@testable import Vault

@Suite struct KeychainConformanceTests {
  @Test(arguments: KeychainConformance.cases)
  func vaultConforms(_ test: KeychainConformance.Case) throws {
    let fixture = try VaultFixture()
    try test.run { try fixture.open() }
  }

  @Test(arguments: KeychainConformance.cases)
  func vaultThatReadsSingleItemsConforms(_ test: KeychainConformance.Case) throws {
    let fixture = try VaultFixture()
    try test.run { try fixture.openReadingSingleItems() }
  }

  @Test(arguments: KeychainConformance.history)
  func vaultKeepsVersions(_ test: KeychainConformance.Case) throws {
    let fixture = try VaultFixture()
    try test.run { try fixture.openKeepingVersions() }
  }

  @Test(arguments: KeychainConformance.cases)
  func memoryConforms(_ test: KeychainConformance.Case) throws {
    let first = MemoryKeychain()
    try test.run { MemoryKeychain(sharing: first) }
  }
}
