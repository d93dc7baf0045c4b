import Glibc
import KeyringHarness
import Testing

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

  @Test func serviceThatHangsLeavesTheVault() throws {
    let other = OtherProcess(bus: bus.address)
    bus.signalKeyring(SIGSTOP)
    defer { bus.signalKeyring(SIGCONT) }
    #expect(other.run("secret", "my.service", "first") != nil)
    let got = other.begin(["get", "keychain/generic/my.service/%/value"], program: "keyhole")
    #expect(OtherProcess.wait(got) == 0 && other.output == "first")
  }
}
