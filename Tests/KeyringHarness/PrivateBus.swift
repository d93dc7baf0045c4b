public import Glibc
import Synchronization

/// A session bus of a test's own, with a real gnome-keyring-daemon on it.
public final class PrivateBus: Sendable {
  public let folder: String
  public let address: String
  private let replies: Int
  private let daemons = Mutex<(bus: pid_t, keyring: pid_t)>((0, 0))

  public struct Failure: Error, CustomStringConvertible {
    public let description: String
  }

  /// The password of the keyring `login`.
  public static let password = "pw"

  /// Starts the bus; a service only if `startKeyring` is called.
  ///
  /// `replies` is how many may be on the way to one connection at a time: 128 where a bus's configuration says
  /// nothing, while the one that is usual for sessions allows 50,000.
  public init(replies: Int = 128) throws {
    self.replies = replies
    let parent = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
    var template = Array("\(parent)/keyhole-bus.XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else { throw Failure(description: "no folder in \(parent)") }
    folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    address = "unix:path=\(folder)/bus"
    for name in ["home", "run", "data", "config"] { unsafe mkdir("\(folder)/\(name)", 0o700) }
    try startBus()
  }

  deinit {
    stop()
    _ = try? Shell.run("rm -rf -- \"$0\"", [folder], environment)
  }

  public var environment: [String] {
    [
      "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=\(folder)/home", "XDG_RUNTIME_DIR=\(folder)/run",
      "XDG_DATA_HOME=\(folder)/data", "XDG_CONFIG_HOME=\(folder)/config", "LC_ALL=C.UTF-8",
      "DBUS_SESSION_BUS_ADDRESS=\(address)",
    ]
  }

  /// Starts the bus, and returns when it takes connections. Nothing on it is started by itself.
  public func startBus() throws {
    let configuration = """
      <busconfig><type>session</type><listen>\(address)</listen><auth>EXTERNAL</auth>
      <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
      <allow own="*"/></policy><limit name="max_replies_per_connection">\(replies)</limit>
      <limit name="max_incoming_bytes">1000000000</limit><limit name="max_outgoing_bytes">1000000000</limit>
      <limit name="max_message_size">1000000000</limit></busconfig>
      """
    _ = try Shell.run(
      "rm -f \"$0/bus\"; printf %s \"$1\" > \"$0/bus.conf\"", [folder, configuration], environment)
    let process = try Shell.start(
      "exec dbus-daemon --config-file=\"$0/bus.conf\" --nofork --nopidfile --print-address=1 2>>\"$0/log\"",
      [folder], environment, waitingForALine: true)
    daemons.withLock { $0.bus = process }
  }

  /// Starts the keyring daemon, unlocked or not, and returns when it has its name on the bus.
  public func startKeyring(unlocked: Bool = true) throws {
    let unlock = unlocked ? "printf \(Self.password) | gnome-keyring-daemon --unlock" : "gnome-keyring-daemon"
    try startService("\(unlock) --foreground --components=secrets >>\"$0/log\" 2>&1")
  }

  /// Starts a script that becomes a service, and returns when it has its name on the bus.
  func startService(_ script: String) throws {
    _ = try Shell.start(script, [folder], environment)
    try run("gdbus wait --session --timeout 20 org.freedesktop.secrets")
    let owner = try run(
      "gdbus call --session -d org.freedesktop.DBus -o / -m org.freedesktop.DBus.GetConnectionUnixProcessID "
        + "org.freedesktop.secrets")
    let digits = owner.split(separator: " ").last?.filter(\.isNumber) ?? ""
    guard let process = Int32(digits) else { throw Failure(description: "no keyring: \(owner)") }
    daemons.withLock { $0.keyring = process }
  }

  /// Lays down a keyring without a password for the daemon to find: items of the service `name` with the
  /// accounts 1 to `items`, and the secrets `secret 1`… The first lookup of one unlocks it.
  public func addKeyring(named name: String, items: Int) throws {
    try run(
      """
      mkdir -p "$0/data/keyrings"
      { printf '[keyring]\\ndisplay-name=\(name)\\nctime=0\\nmtime=0\\nlock-on-idle=false\\nlock-after=false\\n'
        seq \(items) | awk '{
          printf "\\n[%d]\\nitem-type=0\\ndisplay-name=label %d\\nsecret=secret %d\\nmtime=1\\nctime=1\\n", $1, $1, $1
          printf "\\n[%d:attribute0]\\nname=service\\ntype=string\\nvalue=\(name)\\n", $1
          printf "\\n[%d:attribute1]\\nname=account\\ntype=string\\nvalue=%d\\n", $1, $1 }'
      } > "$0/data/keyrings/\(name).keyring"
      """)
  }

  /// Lays down a keyring without a password for the daemon to find: items without attributes, with these labels
  /// as GLib's key files have them, and the secrets `secret 1`…
  public func addKeyring(named name: String, labels: [String]) throws {
    var text = "[keyring]\ndisplay-name=\(name)\nctime=0\nmtime=0\nlock-on-idle=false\nlock-after=false\n"
    for (index, label) in labels.enumerated() {
      let number = index + 1
      text += "\n[\(number)]\nitem-type=0\ndisplay-name=\(label)\nsecret=secret \(number)\nmtime=\(number)\n"
      text += "ctime=\(number)\n"
    }
    try run(
      "mkdir -p \"$0/data/keyrings\"; cat > \"$0/data/keyrings/\(name).keyring\"", input: Array(text.utf8))
  }

  /// Unlocks a keyring that has no password.
  public func unlock(_ collection: String) throws {
    try run(
      "gdbus call --session -d org.freedesktop.secrets -o /org/freedesktop/secrets "
        + "-m org.freedesktop.Secret.Service.Unlock \"['/org/freedesktop/secrets/collection/\(collection)']\""
    )
  }

  func remember(keyring process: pid_t) {
    daemons.withLock { $0.keyring = process }
  }

  /// The daemon's process.
  public var keyring: pid_t { daemons.withLock { $0.keyring } }

  public func signalKeyring(_ number: Int32) {
    kill(keyring, number)
  }

  /// Ends the daemon and returns when its name is free.
  public func stopKeyring() throws {
    let process = daemons.withLock { daemons in
      defer { daemons.keyring = 0 }
      return daemons.keyring
    }
    guard process != 0 else { return }
    kill(process, SIGKILL)
    Shell.waitForEnd(process)
    // The bus may notice it later.
    try run(
      "while gdbus call --session -d org.freedesktop.DBus -o / -m org.freedesktop.DBus.NameHasOwner "
        + "org.freedesktop.secrets 2>/dev/null | grep -q true; do :; done")
  }

  /// Sends a signal to the bus itself: SIGSTOP has it read and write nothing.
  public func signalBus(_ number: Int32) {
    let process = daemons.withLock { $0.bus }
    if process != 0 { kill(process, number) }
  }

  public func stopBus() {
    let process = daemons.withLock { daemons in
      defer { daemons.bus = 0 }
      return daemons.bus
    }
    guard process != 0 else { return }
    kill(process, SIGKILL)
    Shell.waitForEnd(process)
  }

  public func stop() {
    try? stopKeyring()
    stopBus()
  }

  /// Runs a script with the bus in its environment; `$0` is the folder. - Throws: with what it says.
  @discardableResult public func run(_ script: String, input: [UInt8] = []) throws -> String {
    String(decoding: try bytes(of: script, input: input), as: UTF8.self)
  }

  /// The output of a script, byte for byte.
  public func bytes(of script: String, input: [UInt8] = []) throws -> [UInt8] {
    try Shell.run(script, [folder], environment, input: input)
  }

  public func lock() throws {
    try run(
      "gdbus call --session -d org.freedesktop.secrets -o /org/freedesktop/secrets "
        + "-m org.freedesktop.Secret.Service.Lock \"['/org/freedesktop/secrets/collection/login']\" >/dev/null"
    )
  }
}
