import ArgumentParser
import Control
import KeychainSelection
import Model
import Service

struct StatusCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Tell what is mounted where, from which stores, and what was refused or slow lately.",
    discussion: "`keyhole service` without a mount is among it.")

  @Flag(help: "One JSON object, as in MOUNT/.keyhole/status; without a mount, that of `keyhole service`.")
  var json = false

  func run() throws {
    let places = try StoragePaths.current()
    let mounts = MountRegistration.all(in: places.runtime)
    let services = MountRegistration.serving(in: places.runtime).filter(\.isService)
    let records = services + mounts
    guard let last = records.last else {
      // Its process has ended by itself where the connection was aborted.
      if let path = SystemChecks.dead().last {
        throw Failure(
          path,
          "nothing answers for this mount any more; \(SystemChecks.remedy(ofDead: path, places))")
      }
      throw Failure(nil, "nothing is mounted; `keyhole mount` mounts on \(places.mountPoint)", .notFound)
    }
    if json { return StandardOutput.write(try RunningMount(last).report.jsonForStandardOutput) }
    var failures: [Failure] = []
    for record in records {
      do throws(Failure) {
        StandardOutput.write(try RunningMount(record).description(KeyholeCommand.version))
      } catch {
        failures.append(error)
      }
    }
    if let path = OpenedPath.mountOfCommands() {
      StandardOutput.print("Commands use the settings and the keychain of \(path), which was mounted last.")
    }
    if let failure = failures.last { throw failure }
  }
}
