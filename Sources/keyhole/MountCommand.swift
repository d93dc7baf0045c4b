import ArgumentParser
import Glibc
import Model

struct MountCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mount", abstract: "Mount the tree, by default on ~/Keyhole.",
    discussion: """
      Returns when the mount answers; a process in the background serves it until it is unmounted.

      Options for -o, with commas between them:
        keychain=auto|vault|none   which keychain is shown (auto: the vault)
        eol=exact                  secrets keep the line feed that ends their only line
        ro                         nothing can be changed
        allow_other                other users may look, as far as the modes let them
        echo=off                   no inotify events for changes from outside
      and those of mount(8) that make sense here: noatime, nosuid, nodev, noexec, sync, _netdev, ...
      """)

  @Option(name: .short, help: ArgumentHelp("Mount options.", valueName: "options"))
  var o: [String] = []

  @Flag(help: "Serve the mount in this process, until it is unmounted or Ctrl-C.")
  var foreground = false

  /// Where the background process says that it is ready, or why not.
  @Option(help: .hidden)
  var readyDescriptor: Int32?

  @Argument(help: "An empty folder of yours.")
  var mountpoint: String?

  func run() throws {
    let options = try MountOptions(o)
    guard foreground else { return try Daemon.start(arguments) }
    EndSignals.hold()
    try Daemon.reporting(to: readyDescriptor) { ready in
      let places = try Places.current()
      let mountPoint = try MountPoint(mountpoint, places)
      try Server(options, places, mountPoint.path).serve(ready)
    }
  }

  private var arguments: [String] {
    ["mount", "--foreground"] + o.flatMap { ["-o", $0] } + ["--"] + (mountpoint.map { [$0] } ?? [])
  }
}
