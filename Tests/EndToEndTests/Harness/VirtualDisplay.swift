import Glibc

/// An X server without a screen (Xvfb), for the windows of a test.
struct VirtualDisplay {
  private let server: Program
  /// Such as `:3`.
  let name: String

  /// For programs that get the display by their environment.
  var variable: String { "DISPLAY=" + name }

  /// Waits until the server takes connections.
  init(_ world: World) throws {
    server = try Program(
      ["/usr/bin/Xvfb", "-displayfd", "1", "-screen", "0", "800x600x24", "-nolisten", "tcp"],
      environment: world.environment, directory: world.outside, log: world.log)
    name = ":\(try server.line() ?? "")"
  }

  func end() {
    server.signal(SIGTERM)
    _ = try? server.waitForEnd(until: Deadline(in: .seconds(10)))
  }
}
