import Testing

/// The view `app` of format `env`, of two items.
enum AppView {
  /// The commands that make it.
  static let make = """
    printf abc | keyhole set keychain/generic/app/TOKEN; printf peter | keyhole set keychain/generic/app/USER
    keyhole view app --format env --from keychain/generic/app
    """
  /// Its content.
  static let text = "TOKEN=abc\nUSER=peter\n"

  /// Runs `body` with a mount that has it.
  static func withView(
    _ options: String..., body: (MountedKeyhole) throws -> Void
  ) async throws {
    try await withWorld { world in
      let keyhole = MountedKeyhole(world, options: ["keychain=vault"] + options)
      defer { keyhole.cleanUp() }
      try keyhole.start()
      try world.check(make)
      try body(keyhole)
    }
  }
}
