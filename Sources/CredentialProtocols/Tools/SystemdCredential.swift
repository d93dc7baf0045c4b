package import Model

/// A credential that a service manager asks for: systemd.exec(5), `LoadCredential=ID:SOCKET`.
///
/// It connects from a socket that it has bound to the abstract address `RANDOM/unit/UNIT/ID`. Any process can bind such an
/// address, so the unit is believed of root's manager alone.
package struct SystemdCredential: Hashable, Sendable {
  /// `web.service`
  package let unit: ExactString
  /// The credential's name.
  package let id: ExactString

  /// By the peer's address, without the NUL that an abstract one begins with; nil: it is no such address.
  package init?(address: [UInt8]) {
    let parts = address.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard parts.count == 4, !parts[0].isEmpty, parts[1].elementsEqual("unit".utf8),
      let unit = ExactString(utf8: parts[2]), let id = ExactString(utf8: parts[3]),
      Self.isUnit(unit), Self.isName(id)
    else { return nil }
    (self.unit, self.id) = (unit, id)
  }

  /// The names of units have letters, digits and a few other characters, and a type.
  private static func isUnit(_ name: ExactString) -> Bool {
    (1...255).contains(name.utf8.count) && name.utf8.contains(UInt8(ascii: "."))
      && name.utf8.allSatisfy { byte in
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
          || ":-_.\\@".utf8.contains(byte)
      }
  }

  /// A credential's name is a file name without a colon.
  private static func isName(_ name: ExactString) -> Bool {
    (1...255).contains(name.utf8.count) && name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x3A }
      && name != "." && name != ".."
  }

  /// The identity of the item that a person made for this unit and this name. A name has no colon, so two pairs never have one
  /// identity.
  package var identity: ItemIdentity {
    .generic(service: "systemd", account: ExactString("\(unit.string):\(id.string)"))
  }
}
