import KeyringHarness

/// Tests of a mount with the desktop's keyring, gnome-keyring on a bus of the test's own, as its keychain.
protocol KeyringMountTesting {
  var bus: PrivateBus { get }
}

extension KeyringMountTesting {
  var address: String { "DBUS_SESSION_BUS_ADDRESS=\(bus.address)" }

  /// Stores an item as a program does, with the label `label`.
  func store(_ secret: String, _ attributes: String) throws {
    try bus.run("secret-tool store --label=label \(attributes)", input: Array(secret.utf8))
  }

  /// A bus with a keyring that is unlocked.
  static func keyring() throws -> PrivateBus {
    let bus = try PrivateBus()
    try bus.startKeyring()
    return bus
  }
}
