import Glibc
import KeyringHarness
import Testing

/// Section 4 on the desktop's keyring: secrets come and go through libsecret and GLib, which is code of others.
@Suite(
  .timeLimit(.minutes(2)), .enabled(if: Privileges.isRoot, "needs root: reads another process's memory"))
struct KeyringSecrecyAsRootTests {
  static let value = "\(SecrecyTests.item)/value"
  let bus: PrivateBus

  init() throws {
    bus = try PrivateBus()
    try bus.startKeyring()
  }

  private func withKeyring(_ body: (MountedKeyhole) throws -> Void) async throws {
    let address = "DBUS_SESSION_BUS_ADDRESS=\(bus.address)"
    try await withKeyhole("keychain=secret-service", environment: [address], body: body)
  }

  @Test func memoryHasNoSecretWhateverWasDoneWithIt() async throws {
    let markers = (0..<4).map { _ in Marker() }
    try await withKeyring { keyhole in
      let process = try keyhole.process
      func expectNone(_ when: String) throws {
        // One after the other: reading all of a process's memory takes its time.
        for marker in markers { #expect(try marker.count(inMemoryOf: process) == 0, "\(when)") }
      }
      try keyhole.check(
        "mkdir -p \(SecrecyTests.item); cat > \(Self.value)", sending: Array(markers[0].text.utf8))
      try keyhole.check("cat \(Self.value)", prints: markers[0].text)
      try expectNone("after writing and reading")
      try keyhole.check("cat >> \(Self.value)", sending: Array(markers[1].text.utf8))
      try keyhole.check("dd of=\(Self.value) bs=7 status=none", sending: Array(markers[2].text.utf8))
      // Of this one only the length is wanted.
      try bus.run(
        "secret-tool store --label=x service s account outside", input: Array(markers[3].text.utf8))
      let seen = holds {
        (try? System.status(keyhole / "keychain/generic/s/outside/value"))?.st_size == 200
      }
      #expect(seen)
      try expectNone("after others have stored")
      try keyhole.check("cat keychain/generic/s/*/value | wc -c", prints: "400\n")
      // With the secret open and read, when it has to be somewhere. Neither a core nor swap can have more than this.
      let open = try OpenFile(keyhole / Self.value, O_RDWR)
      #expect(try open.readAll().count == 200)
      try expectNone("while it is open")
      try open.close()
      try keyhole.check("mv \(SecrecyTests.item) keychain/generic/s/q; rm -r keychain/generic/s")
      try expectNone("after removing")
    }
  }
}
