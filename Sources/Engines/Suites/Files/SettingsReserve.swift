import Platform
import Store
import Synchronization

/// The reserve of the settings' disk, given up so that keys can still be removed when the disk is full.
///
/// It lies with the state where that is on the same disk, else beside the suites.
final class SettingsReserve: Sendable {
  /// In bytes; as much as most suites take.
  private static let usualSize = 256 * 1024
  /// The size of a file's name and the rest, in bytes.
  private static let slack = 64 * 1024

  private let folder: String
  private let stateFolder: String
  /// The size that was there last, or that there was no room for; 0: not looked for yet.
  private let known = Mutex(0)

  init(_ folder: String, _ stateFolder: String) {
    (self.folder, self.stateFolder) = (folder, stateFolder)
  }

  /// Sees to a reserve that a suite of this size could be written into. Costs nothing where it was there before.
  func restore(for size: Int) {
    let wanted = max(Self.usualSize, size + Self.slack)
    known.withLock { known in
      guard known < wanted else { return }
      // The first suite of a user may be written before anything of the state is.
      try? SuiteFiles.makeFolder(stateFolder)
      guard let file else { return }
      file.restore(wanted)
      known = wanted
    }
  }

  func giveUp() {
    known.withLock { known in
      known = 0
      for file in [file, ReserveFile(path(in: folder))] { file?.giveUp() }
    }
  }

  /// nil: there is no folder for it yet.
  var file: ReserveFile? {
    let isWithState = SuiteFiles.areOnOneDisk(folder, stateFolder)
    guard isWithState || Files.allows(.write, folder) else { return nil }
    return ReserveFile(isWithState ? stateFolder + "/settings.reserve" : path(in: folder))
  }

  private func path(in folder: String) -> String { folder + "/.keyhole-reserve" }
}
