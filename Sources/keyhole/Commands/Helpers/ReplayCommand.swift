import ArgumentParser
import Service

/// The process that repeats outside changes through the mount's path. The process of the mount starts it.
struct ReplayCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "echo-changes", abstract: "Tell those who watch a mount of outside changes.",
    shouldDisplay: false)

  /// `major:minor` of the mount: at its path may be something else by now.
  @Argument var device: String
  @Argument var mountpoint: String

  func run() {
    ReplayWorker.run(device: device, mountPoint: mountpoint)
  }
}
