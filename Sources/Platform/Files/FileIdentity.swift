import CSystem

/// The file or folder of a file system that has a name now; one that is renamed stays the same.
///
/// The number of the device is not in it, which may be another one after the next start of the system: so it can be kept.
package struct FileIdentity: Hashable, Sendable {
  /// The inode's number.
  package let number: UInt64
  /// The moment of its creation, as seconds and nanoseconds; 0 where the file system does not record it.
  package let birth: [Int64]

  package init(number: UInt64, birth: [Int64]) {
    self.number = number
    self.birth = birth
  }

  /// statx(2), symbolic links not followed; nil: nothing has the name.
  package init?(_ path: String) {
    var (number, birth): (UInt64, [Int64]) = (0, [0, 0])
    // SAFETY: the two numbers of the array are there during the call.
    guard unsafe linux_inode(path, &number, &birth) == 0 else { return nil }
    self.init(number: number, birth: birth)
  }
}
