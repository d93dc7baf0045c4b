import Dispatch
import FTPropertyWrappers
import Foundation
import Glibc
import KeychainStorage
import KeyringHarness
import SecretService
import Store
import Testing

@testable import DefaultKeychain

/// Where the desktop has a keyring, wrappers, `keyhole get` and secret-tool have one keychain.
@Suite(.serialized, .timeLimit(.minutes(2))) struct DesktopKeyringTests {
  let bus: PrivateBus

  init() throws {
    bus = try PrivateBus()
    try bus.startKeyring()
  }

  @Test func wrappersAndOtherProgramsHaveOneKeychain() throws {
    let other = OtherProcess(bus: bus.address)
    #expect(other.run("secret", "my.service", "first") != nil)
    #expect(try bus.run("secret-tool lookup service my.service") == "first")
    let got = other.begin(["get", "keychain/generic/my.service/%/value"], program: "keyhole")
    #expect(OtherProcess.wait(got) == 0 && other.output == "first")

    let process = other.begin(["reveal", "my.service", "last"])
    #expect(holds { other.output == "first\n" })
    try bus.run("printf second | secret-tool store --label=x service my.service account ''")
    #expect(holds { other.output == "first\nsecond\n" })
    try bus.run("printf last | secret-tool store --label=x service my.service account ''")
    #expect(OtherProcess.wait(process) == 0)
    #expect(other.output == "first\nsecond\nlast\n")
  }

  /// A service that hangs after it was found: who asks it waits ten seconds at most, and keeps what was read last.
  @Test func serviceThatHangsLaterCostsTenSecondsAndNoValue() throws {
    let location = KeychainLocation(live: try keychain())
    let (password, writer, other) = KeychainLocation.$current.withValue(location) {
      let make = { GenericPassword<String>(service: $0) }
      return (make("my.service"), make("my.service"), make("another"))
    }
    other.wrappedValue = "x"
    let entry = KeychainStorage(wrappedValue: 1, provider: Keychain(service: "s", in: location), key: "k")
    password.wrappedValue = "first"
    #expect(
      password.wrappedValue == "first" && password.projectedValue.error == nil && entry.wrappedValue == 1)

    bus.signalKeyring(SIGSTOP)
    let began = ContinuousClock.now
    concurrently(
      { #expect(password.wrappedValue == "first") }, { writer.wrappedValue = "second" },
      { entry.wrappedValue = 2 }, { #expect(throws: KeychainError.self) { try other.deleteKeychain() } },
      {
        // The first value must not be written over what could not be read.
        let late = KeychainStorage(wrappedValue: 9, provider: Keychain(service: "s", in: location), key: "k")
        #expect(late.projectedValue.error != nil)
      })
    // Ten seconds, and what a busy machine adds; one access after another would take fifty.
    #expect(.now - began < .seconds(40))
    #expect(password.projectedValue.error != nil && writer.projectedValue.error != nil)
    #expect(entry.wrappedValue == 1 && entry.projectedValue.error != nil)

    bus.signalKeyring(SIGCONT)
    // A call that was on its way to the service when it hung may be done when it wakes.
    #expect(holds { password.wrappedValue != nil && password.projectedValue.error == nil })
    entry.wrappedValue = 3
    #expect(entry.wrappedValue == 3 && entry.projectedValue.error == nil)
  }

  private func keychain() throws -> LiveKeychain {
    let engine = try SecretServiceEngine(address: bus.address)
    return LiveKeychain { LiveKeychain.Opened(store: KeychainStore(engine: engine)) }
  }

  /// Each on a thread of its own: a queue's are slow to become more.
  private func concurrently(_ bodies: @Sendable () -> Void...) {
    let group = DispatchGroup()
    for body in bodies {
      group.enter()
      Thread.detachNewThread {
        body()
        group.leave()
      }
    }
    group.wait()
  }

  @Test func serviceThatHangsLeavesTheVault() throws {
    let other = OtherProcess(bus: bus.address)
    bus.signalKeyring(SIGSTOP)
    defer { bus.signalKeyring(SIGCONT) }
    #expect(other.run("secret", "my.service", "first") != nil)
    let got = other.begin(["get", "keychain/generic/my.service/%/value"], program: "keyhole")
    #expect(OtherProcess.wait(got) == 0 && other.output == "first")
  }
}
