import Glibc
import LossyFileSystem
import Testing

/// Every test cuts the power: on a disk that keeps only what was synchronised, and of the rest what it likes.
///
/// One after the other, for each has a mount and a program of its own.
@Suite(.serialized) struct PowerLossTests {
  /// A disk with the folders that a home has, and the file in which the program says what it was promised.
  static func home(folders: [String] = ["config", "data", "state"]) -> LossyDisk {
    var disk = LossyDisk(owner: geteuid(), group: getegid())
    for folder in folders { disk.makeFolder(folder) }
    disk.makeFile("oracle", [UInt8](repeating: 0, count: 8))
    return disk
  }

  /// Has the program work on a disk; the disk at each cut, and at the end.
  static func cuts(
    _ work: String, on disk: LossyDisk, steps: Int, seed: UInt64, _ cuts: PowerCuts
  ) throws -> [LossyDisk] {
    try withMount(disk, cuts: cuts) { mount in
      let arguments = [Products.folder + "/PowerLossProgram", work, mount.path, "\(seed)", "\(steps)"]
      try Child(arguments).finish()
      return mount.cuts.disks + [mount.disk]
    }
  }

  /// Runs `check` on what each cut left, in every way, with the number of acknowledged steps.
  ///
  /// - Returns: how many power losses there were.
  @discardableResult
  static func forEachLoss(
    _ disks: [LossyDisk], seed: UInt64, _ check: (_ root: String, _ acknowledged: Int) throws -> Void
  ) throws -> Int {
    var (losses, failures) = (0, 0)
    for (index, disk) in disks.enumerated() {
      for survival in Survival.all(seed: seed &+ UInt64(index)) {
        losses += 1
        let bytes = try #require(disk.survivor(survival).bytes("oracle"))
        let acknowledged = bytes.reversed().reduce(0) { $0 << 8 | Int($1) }
        do {
          try withSurvivor(of: disk, survival) { try check($0, acknowledged) }
        } catch {
          Issue.record("cut \(index) of seed \(seed), \(survival), step \(acknowledged): \(error)")
          failures += 1
          // One defect shows after many cuts.
          if failures == 3 { throw Failure("3 of \(losses) power losses did harm") }
        }
      }
    }
    return losses
  }
}
