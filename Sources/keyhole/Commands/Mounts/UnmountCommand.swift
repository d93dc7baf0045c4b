import ArgumentParser
import Control
import KeychainSelection
import Model
import Platform
import Prompting
import Service

struct UnmountCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unmount", abstract: "Take the mount away, when everything is stored.")

  @Flag(help: "Also while it is in use: what has files open there keeps them.")
  var lazy = false

  @OptionGroup var quiet: QuietOption

  @Argument(help: "The mount; without it, the one of this user's stores.", completion: .mountPoint)
  var mountpoint: String?

  func run() throws {
    quiet.apply()
    let places = try StoragePaths.current()
    let records = MountRegistration.all(in: places.runtime)
    let wanted = mountpoint.map(MountPoint.absolute)
    if wanted == nil, records.count > 1 {
      let paths = records.map { $0.path.quotedForShell }.joined(separator: ", ")
      throw Failure(nil, "there are several mounts: \(paths); name the one that is to go")
    }
    let record = records.last { record in wanted.map { $0 == record.path } ?? true }
    guard let path = wanted ?? record?.path else { throw Failure(nil, "nothing is mounted", .notFound) }
    guard MountTable().entry(at: path)?.type == "fuse.keyhole" else {
      throw Failure(path, "Keyhole is not mounted there", .notFound)
    }
    let process = record.flatMap { ProcessHandle(process: $0.process) }
    let isLazy = lazy || record?.isAlive == false
    let pause = isLazy ? nil : record.flatMap { ReplayPause($0, places) }
    try withExtendedLifetime(pause) { try Unmounting.take(path, lazily: isLazy) }
    // Taken away while in use, it serves on for as long as files are open.
    guard let record, let process, !lazy else { return }
    let reason =
      record.isStopped
      ? "the process of the mount is stopped, and ends after `kill -CONT \(record.process)`"
      : "files are open there in another mount namespace; the process of the mount ends with the last one"
    guard record.isStopped || !process.waitForEnd(seconds: Unmounting.patience) else { return }
    StandardError.note(reason)
  }
}
