import Model
import Platform

/// A mount that root makes for another user, as fusermount3 makes one for its caller.
package enum MountForOwner {
  /// mount(2); the descriptor of /dev/fuse, which serves it.
  ///
  /// - Throws: `Failure`
  package static func make(
    at folder: OwnedMountPoint, _ options: MountOptions, for owner: MountOwner
  ) throws -> Int32 {
    let (path, link) = (folder.path, folder.link)
    let device: Descriptor
    do throws(Errno) { device = try Descriptor("/dev/fuse", .readingAndWriting) } catch {
      throw Failure("/dev/fuse", "it can't be opened: \(error)")
    }
    var data = "fd=\(device.number),rootmode=40000,user_id=\(owner.user),group_id=\(owner.group)"
    if options.allowsOthers || options.allowsRoot { data += ",default_permissions,allow_other" }
    do throws(Errno) {
      try KernelMount.add(options.source, at: link, type: "fuse.keyhole", options.mountFlags, data: data)
    } catch {
      throw Failure(path, "mounting failed: \(error)")
    }
    return device.release()
  }
}

extension MountOptions {
  /// The arguments for mount(2), as fusermount3 would pass them on.
  fileprivate var mountFlags: KernelMount.Flags {
    let known: [String: KernelMount.Flags] = [
      "noatime": .noAccessTimes, "nodiratime": .noFolderAccessTimes, "sync": .synchronous,
      "dirsync": .synchronousFolders,
    ]
    let always: KernelMount.Flags = [.noSetUser, .noDevices, .noPrograms]
    let chosen = forKernel.compactMap { known[$0] } + (isReadOnly ? [.readOnly] : [])
    return chosen.reduce(always) { $0.union($1) }
  }
}
