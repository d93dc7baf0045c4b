import Platform

/// Where the session bus is, as GLib finds it: DBUS_SESSION_BUS_ADDRESS, else the socket `bus` in the user's runtime
/// folder, which is XDG_RUNTIME_DIR, or `/run/user/UID` where a program has no such variable (cron, su).
package enum SessionBus {
  /// nil: there is none.
  package static var address: String? {
    if let address = Environment.value("DBUS_SESSION_BUS_ADDRESS"), !address.isEmpty { return address }
    let path = (Environment.absolutePath("XDG_RUNTIME_DIR") ?? "/run/user/\(User.real)") + "/bus"
    return isSocketOfUser(path) ? "unix:path=" + escaped(path) : nil
  }

  private static func isSocketOfUser(_ path: String) -> Bool {
    guard let status = try? Files.status(path) else { return false }
    return status.kind == .socket && status.owner == User.real
  }

  /// Addresses of D-Bus have all but a few characters in hexadecimal.
  private static func escaped(_ path: String) -> String {
    path.utf8.map { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "-"), UInt8(ascii: "_"),
        UInt8(ascii: "."), UInt8(ascii: "*"), UInt8(ascii: "\\"):
        String(UnicodeScalar(byte))
      default: "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
      }
    }.joined()
  }
}
