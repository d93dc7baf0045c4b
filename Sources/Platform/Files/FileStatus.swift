import Glibc

/// The status of a file, as stat(2) has it.
package struct FileStatus: Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    case regular, folder, link, fifo, socket, characterDevice, blockDevice
  }

  package let id: FileID
  /// nil: a kind that Linux does not have today.
  package let kind: Kind?
  /// The twelve bits of chmod(2).
  package let permissions: UInt32
  package let owner: UInt32
  package let group: UInt32
  /// In bytes.
  package let size: Int64
  /// How many names the file has; 0: it was removed while it was open.
  package let links: UInt64
  package let modified: SystemTime
  /// The device that a device file stands for (`st_rdev`).
  package let representedDevice: UInt64

  init(_ raw: stat) {
    id = FileID(device: UInt64(raw.st_dev), inode: UInt64(raw.st_ino))
    kind = Kind(raw.st_mode)
    permissions = UInt32(raw.st_mode) & 0o7777
    owner = raw.st_uid
    group = raw.st_gid
    size = Int64(raw.st_size)
    links = UInt64(raw.st_nlink)
    modified = SystemTime(raw.st_mtim)
    representedDevice = UInt64(raw.st_rdev)
  }

  package var isRegular: Bool { kind == .regular }
  package var isFolder: Bool { kind == .folder }
  package var isLink: Bool { kind == .link }

  /// Whether group or others have any right to the file.
  package var isShared: Bool { permissions & 0o077 != 0 }
}

extension FileStatus.Kind {
  fileprivate init?(_ mode: mode_t) {
    switch mode & S_IFMT {
    case S_IFREG: self = .regular
    case S_IFDIR: self = .folder
    case S_IFLNK: self = .link
    case S_IFIFO: self = .fifo
    case S_IFSOCK: self = .socket
    case S_IFCHR: self = .characterDevice
    case S_IFBLK: self = .blockDevice
    default: return nil
    }
  }
}
