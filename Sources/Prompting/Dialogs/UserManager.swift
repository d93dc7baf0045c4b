import Platform
import SecretMemory

/// The user's service manager, which knows the display of the session, also when it came up after the mount.
enum UserManager {
  private static let display = ["DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY"]

  static var runtimeFolder: String { "/run/user/\(User.real)" }

  static var variables: [String] {
    ["XDG_RUNTIME_DIR=\(runtimeFolder)", "DBUS_SESSION_BUS_ADDRESS=unix:path=\(runtimeFolder)/bus"]
  }

  /// The variables of this process's environment that lead to a display.
  static var ownDisplayVariables: [String] {
    display.compactMap { name in environment(name).map { "\(name)=\($0)" } }
  }

  /// Of its environment what leads to the display; empty where there is no such manager.
  static func displayVariables() -> [String] {
    guard Files.exists(runtimeFolder + "/systemd") else { return [] }
    let words = ["/usr/bin/systemctl", "--user", "show-environment"]
    guard let child = try? Child(words, input: .piped, environment: variables) else { return [] }
    defer { child.end() }
    child.closeInput()
    guard child.waitForEnd(seconds: 2),
      let text = try? SecretInput.read(descriptor: child.output, limit: 65536)
    else { return [] }
    return text.span.text.split(separator: "\n").map(String.init).filter { line in
      display.contains { line.hasPrefix($0 + "=") }
    }
  }
}
