import Glibc
import KeyringHarness
import Testing

/// Tests of `keyhole service` without a mount, with clients on a session bus of the test's own.
protocol ServiceTesting {
  var bus: PrivateBus { get }
}

let canServeItems = System.exists("/usr/bin/dbus-daemon") && System.exists("/usr/bin/secret-tool")

extension ServiceTesting {
  /// A vault with the passphrase `horse` that the service serves, locked.
  func withService(_ body: (World) async throws -> Void) async throws {
    try await withWorld(environment: ["DBUS_SESSION_BUS_ADDRESS=\(bus.address)"]) { world in
      _ = try world.sh("echo horse | keyhole passphrase --weak --cost 14")
      try Self.start(world)
      defer { try? Self.end(world) }
      try await body(world)
    }
  }

  static func start(_ world: World) throws {
    let output = try world.sh("keyhole service")
    #expect(output.status == 0, "\(output)")
  }

  static func process(_ world: World) throws -> Int32 {
    Int32(try world.sh("keyhole status --json | jq .pid").text.dropLast()) ?? 0
  }

  /// Ends the service, and returns when it is gone.
  static func end(_ world: World) throws {
    let process = try process(world)
    guard process > 0 else { return }
    kill(process, SIGTERM)
    #expect(try holds { try world.sh("keyhole status").status != 0 })
  }

  static var isLocked: String { "keyhole status --json | jq .locked" }

  static var call: String { "gdbus call --session -d org.freedesktop.secrets -o" }
  static var root: String { "/org/freedesktop/secrets" }

  static func create(_ label: String, _ alias: String) -> String {
    "\(call) \(root) -m org.freedesktop.Secret.Service.CreateCollection "
      + "\"{'org.freedesktop.Secret.Collection.Label': <'\(label)'>}\" '\(alias)' > /dev/null"
  }

  static func label(of collection: String) -> String {
    "\(call) \(root)/collection/\(collection) -m org.freedesktop.DBus.Properties.Get org.freedesktop.Secret.Collection Label"
  }
}
