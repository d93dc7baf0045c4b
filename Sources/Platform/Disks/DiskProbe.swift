/// Whether a disk would take a write now, determined without writing to any file that has a name.
package enum DiskProbe {
  /// In bytes: a disk with less is full for every purpose of Keyhole's.
  private static let leastRoom: UInt64 = 1 << 20
  /// The size that the probe for a quota allocates, in bytes.
  private static let sample: Int64 = 64 * 1024

  /// The numbers of `linux/magic.h`: ext4, XFS, btrfs, F2FS.
  private static let journaling: Set<UInt64> = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010]

  /// The error with which the disk of a folder takes no write at all; nil: it takes some, or that is not known.
  ///
  /// Since Linux 6.12, neither statvfs(3) nor access(2) shows that ext4 made itself read-only after an error of the disk.
  /// There, and in three others, removexattr(2) of an attribute that is not there begins a transaction and changes nothing
  /// (3 µs). Elsewhere open(2) with O_TMPFILE takes its place (10 µs; ext4 then searches the longer for a free inode the
  /// more were removed in the last five seconds).
  ///
  /// - Returns: EROFS; EIO, ENXIO or ENODEV of a lost disk.
  package static func writeError(in folder: String) -> Errno? {
    do throws(Errno) {
      try Files.removeAttribute("user.keyhole.probe", of: folder)
      return nil
    } catch {
      // Others (overlayfs, ZFS) look for the attribute before they ask the disk.
      if error == .ENODATA, let type = try? Files.fileSystem(of: folder), journaling.contains(type) {
        return nil
      }
      if isRefusal(error) { return error }
    }
    do throws(Errno) {
      _ = try Descriptor(unnamedIn: folder)
      return nil
    } catch {
      return isRefusal(error) ? error : nil
    }
  }

  private static func isRefusal(_ error: Errno) -> Bool { [.EROFS, .EIO, .ENXIO, .ENODEV].contains(error) }

  /// ENOSPC or EDQUOT where there is hardly any room in a folder; nil: there is, or that is not known.
  package static func roomError(in folder: String) -> Errno? {
    do throws(Errno) {
      let file = try Descriptor(unnamedIn: folder)
      do throws(Errno) { try file.allocate(sample) } catch {
        // Not every file system can allocate.
        if error == .ENOSPC || error == .EDQUOT { throw error }
      }
      let volume = try Volume(of: file)
      return volume.blocks > 0 && volume.availableBytes < leastRoom ? .ENOSPC : nil
    } catch {
      return error == .ENOSPC || error == .EDQUOT ? error : nil
    }
  }
}
