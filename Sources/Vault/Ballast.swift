import Glibc
import Model
import Store

/// A file that only takes room: given up when the disk is full, so that items can still be deleted.
struct Ballast {
  static let size = 2 * 1024 * 1024

  let directory: VaultDirectory

  /// Makes the file where it is missing and there is room for it several times over.
  func restore() {
    guard let room = try? directory.diskRoom(),
      room.availableBlocks >= UInt64(Self.size << 2) / max(room.blockSize, 1),
      (try? PrivateFile.open(directory.ballast, O_RDONLY)) == nil
    else { return }
    guard (try? PrivateFile.createEmpty(directory.ballast)) != nil,
      let file = try? PrivateFile.open(directory.ballast, O_WRONLY)
    else { return }
    if posix_fallocate(file.number, 0, Self.size) != 0 { giveUp() }
  }

  /// True: there is room now that was not there before.
  @discardableResult func giveUp() -> Bool {
    unsafe unlink(directory.ballast) == 0
  }
}
