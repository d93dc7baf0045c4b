package import Platform
package import Store
import VaultRecords

extension VaultDirectory {
  /// In bytes.
  static let reserveSize = 2 * 1024 * 1024

  /// Given up when the disk is full, so that items can still be deleted.
  package var reserve: ReserveFile { ReserveFile(path + "/vault.reserve") }

  /// Makes the reserve where it is missing and there is room for it several times over.
  package func restoreReserve() {
    // As 0.1 named it.
    try? Files.rename(path + "/vault.ballast", to: reserve.path)
    reserve.restore(Self.reserveSize)
  }
}

extension VaultDirectory {
  /// The problems around the database: a key file that is gone, a disk that takes no writes, no reserve.
  package func problems(needingKey: Bool) -> [Problem] {
    var problems: [Problem] = []
    if needingKey, isMissing(key) {
      problems.append(
        Problem(
          subject: key,
          reason: "it is missing: what is mounted now stays open, but nothing opens the vault again",
          remedy: "put your copy of it back, or `keyhole export` all secrets before you unmount"))
    }
    if let problem = DiskProbe.problem(of: probedFolder) {
      problems.append(problem)
    } else if (reserve.size ?? 0) < ReserveFile.leastSize, readOnlyReason == nil, !isMissing(path) {
      problems.append(
        Problem(
          subject: reserve.path,
          reason: "there is no room for this reserve, so removing may fail once the disk is full",
          remedy:
            "free \(4 * ReserveFile.leastSize / 1024) KiB or more; it is made at the next use of the vault"))
    }
    return problems
  }

  /// Whether nothing has a path. False where that can't be found out.
  private func isMissing(_ path: String) -> Bool {
    do { return try Files.status(path) == nil } catch { return false }
  }
}
