package import Platform
package import Store
package import VaultRecords

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
  /// The problems around the database: a key file that is gone or damaged, a disk that takes no writes, no reserve.
  package func problems(_ slots: [KeySlot]) -> [Problem] {
    var problems = problemOfKey(slots).map { [$0] } ?? []
    if let problem = DiskProbe.problem(of: probedFolder) {
      problems.append(problem)
    } else if (reserve.size ?? 0) < ReserveFile.leastSize, !reserve.hasRoom, readOnlyReason == nil,
      !isMissing(path)
    {
      problems.append(
        Problem(
          subject: reserve.path,
          reason: "there is no room for this reserve, so removing may fail once the disk is full",
          remedy:
            "free \(4 * ReserveFile.leastSize / 1024) KiB or more; it is made at the next use of the vault"))
    }
    return problems
  }

  private func problemOfKey(_ slots: [KeySlot]) -> Problem? {
    guard slots.contains(where: \.takesKeyFile) else { return nil }
    let isDamaged = (try? Files.status(key)).map { $0.size != Int64(KeyFileSource.length) } ?? false
    guard isDamaged || isMissing(key) else { return nil }
    let hasCode = slots.contains { $0.kind == KeySlot.Kind.recoveryCode.rawValue }
    let opener = hasCode ? "only the recovery code opens" : "nothing opens"
    let other =
      hasCode
      ? (isDamaged ? "move it away, and " : "") + "`keyhole passphrase --recover` sets a new passphrase"
      : "`keyhole export` all secrets before you unmount"
    return Problem(
      subject: key,
      reason:
        "it is \(isDamaged ? "damaged" : "missing"): what is mounted now stays open, but \(opener) the vault again",
      remedy: "put your copy of it back, or \(other)")
  }

  /// Whether nothing has a path. False where that can't be found out.
  private func isMissing(_ path: String) -> Bool {
    do { return try Files.status(path) == nil } catch { return false }
  }
}
