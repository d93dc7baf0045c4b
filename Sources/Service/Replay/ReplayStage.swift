import Platform

/// Where replays are performed: below the mount point, and only while the mount is there.
struct ReplayStage {
  private let device: (major: UInt32, minor: UInt32)
  private let mountPoint: String

  init?(device: String, mountPoint: String) {
    let numbers = device.split(separator: ":").compactMap { UInt32($0) }
    guard numbers.count == 2 else { return nil }
    self.device = (numbers[0], numbers[1])
    self.mountPoint = mountPoint
  }

  /// The smallest operation that raises the events of the change. What fails is no longer true, or unmounted.
  func perform(_ line: String) {
    // By scalars: a slash and a combining mark behind it are one Character.
    let line = line.unicodeScalars
    guard let letter = line.first.map(Character.init), let slash = line.lastIndex(of: "/") else { return }
    let path = line.dropFirst(2)
    let folder = path.lastIndex(of: "/").map { mountPoint + "/" + String(path[..<$0]) } ?? mountPoint
    guard let directory = try? OpenFolder(folder, onDevice: device) else { return }
    try? perform(letter, String(line[line.index(after: slash)...]), in: directory)
  }

  private func perform(_ letter: Character, _ name: String, in folder: borrowing OpenFolder) throws(Errno) {
    switch letter {
    case "c":
      do throws(Errno) { try folder.makeFile(name, permissions: 0o600) } catch .EEXIST {
        try folder.allocate(name)
      }
    case "C": try folder.makeFolder(name, permissions: 0o700)
    case "d": try folder.remove(name)
    case "D": try folder.removeFolder(name)
    // It counts as a write: MODIFY, and CLOSE_WRITE at the close. No reply tells the kernel a size, as one of SETATTR would: a
    // reader whose read is under way would end there, or get zeros up to there.
    case "m": try folder.allocate(name)
    case "a": try folder.setPermissions(0o600, of: name)
    case "A": try folder.setPermissions(0o700, of: name)
    default: break
    }
  }
}
