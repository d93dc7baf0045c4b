import Glibc

/// A process and the memory that it had when this was made, which tell whether it has executed another program since.
///
/// execve(2) gives a process another memory. An open file of proc(5) that shows a memory goes on to show that one, and is empty
/// when the last process that had it has ended or executed a program. A process that shares its memory with another one
/// (CLONE_VM) keeps it: so `executable` is to be compared too, which is that of the process at the moment.
package final class ObservedProcess: Sendable {
  /// The process ID, which is no other process's as long as `executable` is not nil.
  package let number: Int32
  /// /proc/PID, which is of one process, also when its number has been given to another one.
  private let folder: Descriptor
  private let memory: Descriptor

  /// nil: there is no such process, this one may not trace it (ptrace(2), PTRACE_MODE_READ), the kernel has no
  /// /proc/PID/pagemap, or no descriptor is left.
  package init?(_ number: Int32) {
    guard number > 0, let folder = try? Descriptor("/proc/\(number)", [.folder]),
      let memory = try? folder.file("pagemap", .reading)
    else { return nil }
    self.number = number
    self.folder = folder
    self.memory = memory
    guard hasItsMemory, executable != nil else { return nil }
  }

  /// Whether some process has the memory still: the entry of its first page can be read (proc(5), `pagemap`).
  package var hasItsMemory: Bool {
    var entry: UInt64 = 0
    // SAFETY: the variable has the size that is given, and lives during the call.
    return unsafe pread(memory.number, &entry, MemoryLayout<UInt64>.size, 0) == MemoryLayout<UInt64>.size
  }

  /// The file that the process executes now; nil: it has ended.
  package var executable: FileID? { file("exe") }

  /// Whether the process has the mount namespace of this one, so that a path leads to the same file for both.
  package var sharesMounts: Bool {
    guard let own = Self.ownMounts.id else { return false }
    return file("ns/mnt") == own
  }

  /// fstatat(2) below /proc/PID.
  private func file(_ name: String) -> FileID? {
    var raw = stat()
    // SAFETY: the name and the structure live during the call.
    guard unsafe fstatat(folder.number, name, &raw, 0) == 0 else { return nil }
    return FileStatus(raw).id
  }

  private static let ownMounts = MountNamespace()
}

/// The mount namespace of this process. While it is open the kernel keeps its inode, which stat(2) else makes again each time: that
/// takes three times as long.
private struct MountNamespace: ~Copyable, Sendable {
  private let file: Descriptor?
  /// nil: it can't be read.
  let id: FileID?

  init() {
    file = try? Descriptor("/proc/self/ns/mnt", .reading)
    id = FileID("/proc/self/ns/mnt")
  }
}

extension Descriptor {
  /// openat(2): a file of the folder that this is.
  fileprivate func file(_ name: String, _ flags: OpenFlags) throws(Errno) -> Descriptor {
    let number = number
    // SAFETY: a variadic call without its variable part; the name lives during the call.
    let file = try Errno.retrying { unsafe openat(number, name, flags.rawValue | O_CLOEXEC) }
    return Descriptor(owning: file)
  }
}
