/// A call of a method that crossed a bus.
public struct BusCall: Sendable {
  public let destination: String
  public let path: String
  public let method: String
}

extension PrivateBus {
  /// The calls on this bus while `body` runs, by any process.
  public func traffic(_ body: () throws -> Void) throws -> [BusCall] {
    // A monitor hears that it has lost its name as its first signal; from then on it hears everything.
    let monitor = """
      $p = open(M, "-|", "dbus-monitor --profile") or die;
      while (<M>) { last if /NameLost/ } $| = 1; print "ready\\n";
      open(F, ">", "$ARGV[0]/traffic") or die;
      while (<M>) { last if /\\tkeyhole\\.Mark\\t/; print F $_ }
      close(F); kill 9, $p
      """
    let process = try Shell.start(
      "exec perl -e \"$1\" \"$0\"", [folder, monitor], environment, waitingForALine: true)
    try body()
    try run("gdbus emit --session --object-path / --signal keyhole.Mark.End")
    Shell.waitForEnd(process)
    return try run("cat \"$0/traffic\"").split(separator: "\n").compactMap(BusCall.init)
  }
}

extension BusCall {
  /// A line of `dbus-monitor --profile`: type, time, serial, sender, destination, path, interface, member.
  fileprivate init?(_ line: Substring) {
    let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
    guard fields.count == 8, fields[0] == "mc" else { return nil }
    (destination, path, method) = (fields[4], fields[5], "\(fields[6]).\(fields[7])")
  }
}
