extension PrivateBus {
  /// The behaviour of a stand-in that a real service can't be made to have.
  public enum Oddity: String, Sendable {
    /// It knows no encrypted session.
    case plain
    /// It is locked, and its window is answered at once.
    case prompt
    /// It is locked, and its window is closed at once.
    case dismiss
    /// It has no collection before one is made, for which it asks; the window is answered at once.
    case fresh
    /// It has no collection, and makes none.
    case barren
    /// It has the name of a Secret Service, and is none.
    case foreign
    /// It is open until it is locked.
    case open
  }

  /// Starts a service of one item (service `S`, account `A`, secret `s3cret`) in the place of a keyring, and
  /// returns when it has its name on the bus. Its sessions are plain.
  public func startStandIn(_ oddities: Oddity...) throws {
    let folder = #filePath.split(separator: "/").dropLast().joined(separator: "/")
    let process = try Shell.start(
      "exec /usr/bin/python3 \"/$1/stand-in.py\" $2 2>>\"$0/log\"",
      [self.folder, folder, oddities.map(\.rawValue).joined(separator: " ")], environment,
      waitingForALine: true)
    remember(keyring: process)
  }
}
