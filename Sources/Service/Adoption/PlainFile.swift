import Model
import Platform
import SecretMemory
import Tree

/// A file of the user's that is opened to be adopted: no other process has it open, and after `protect` none can open it unseen.
struct PlainFile: ~Copyable {
  let path: String
  let status: FileStatus
  private let file: Descriptor
  /// false: the file was opened for reading only, as its permissions have it.
  private let isWritable: Bool
  /// false: `protect` was not called, or the file system has no leases; only its times tell of changes then.
  private var isLeased = false

  /// - Throws: `Failure` for a symbolic link, another kind of file, another user's, one with a second name or that is open.
  init(_ path: String) throws {
    let (number, isWritable, status) = try Self.opened(path)
    // From here on the descriptor is closed with this value.
    file = Descriptor(owning: number)
    self.isWritable = isWritable
    self.path = path
    self.status = status
    // A program that opens the file would wait for as long as a person looks at a question.
    file.releaseLease()
  }

  /// Takes a lease: from now on no process opens the file unseen.
  ///
  /// - Throws: `Failure` where the file was changed since it was opened, or another process has it open.
  mutating func protect() throws {
    // A file system without leases throws.
    if (try? file.takeLease()) == false { throw Self.failure(path, .EBUSY) }
    isLeased = file.hasLease
    guard isUnchanged else { throw Failure(path, "another program changed it meanwhile; try again") }
  }

  private static func opened(_ path: String) throws -> (Int32, isWritable: Bool, FileStatus) {
    do throws(Errno) {
      let (number, isWritable) = try descriptor(path)
      let file = Descriptor(owning: number)
      let status = try file.status
      try requireOwnFile(status)
      // false: another descriptor of the file is open. A file system without leases throws.
      if (try? file.takeLease()) == false { throw .EBUSY }
      return (file.release(), isWritable, status)
    } catch {
      throw failure(path, error)
    }
  }

  /// The number of a descriptor for reading and writing; of a file of one's own that can only be read, for reading. Its permissions stay
  /// as they are until it is overwritten, so that a run which is ended leaves them.
  private static func descriptor(_ path: String) throws(Errno) -> (Int32, isWritable: Bool) {
    do throws(Errno) {
      return (try Descriptor(path, [.readingAndWriting, .noFollow, .nonBlocking]).release(), true)
    } catch .EACCES {
      return (try Descriptor(path, [.reading, .noFollow, .nonBlocking]).release(), false)
    }
  }

  private static func requireOwnFile(_ status: FileStatus) throws(Errno) {
    guard status.isRegular, status.owner == User.effective else { throw .EPERM }
    guard status.links == 1 else { throw .EEXIST }
    guard status.size <= FileTree.secretLimit else { throw .EFBIG }
  }

  private static func failure(_ path: String, _ error: Errno) -> Failure {
    let reason =
      switch error {
      case .ELOOP: "it is a symbolic link"
      case .EPERM: "it is no regular file of your own"
      case .EEXIST: "it has other names (hard links), which would keep the secrets"
      case .EFBIG: "it is larger than \(FileTree.secretLimit) bytes"
      case .EAGAIN: "another `keyhole adopt` works on it; try again when that has ended"
      case .EBUSY: "another program has it open; end that first (`fuser \(path.quotedForShell)` names it)"
      default: "it can't be opened: \(error)"
      }
    return Failure(path, reason + "; nothing was changed", error == .ENOENT ? .notFound : .failed)
  }

  func content() throws -> SecretBytes {
    var bytes = try SecretBytes(count: Int(clamping: status.size))
    let count: Int
    do throws(Errno) {
      var span = bytes.mutableSpan
      count = try file.fill(&span, at: 0)
    } catch { throw Failure(path, "it can't be read: \(error)") }
    guard count == bytes.count, isUnchanged else {
      throw Failure(path, "it was changed while it was read; try again")
    }
    return bytes
  }

  /// No process has written it, or has it open.
  var isUnchanged: Bool {
    guard let now = try? file.status else { return false }
    return now.size == status.size && now.modified == status.modified && now.links == 1
      && (!isLeased || file.hasLease)
  }

  /// Whether the file has this name.
  func isNamed(_ path: String) -> Bool {
    (try? Files.status(path, followingLinks: false))??.id == status.id
  }

  /// Overwrites all bytes in place, and waits for the disk. One that can only be read gets the right to be written: its name goes next.
  func overwrite() throws(Errno) {
    guard !isWritable else { return try Self.overwrite(file, status.size) }
    // Opening it again would wait for this process's own lease.
    file.releaseLease()
    try file.setPermissions(status.permissions & 0o7777 | 0o200)
    try Self.overwrite(file.opened([.readingAndWriting, .nonBlocking]), status.size)
  }

  private static func overwrite(_ file: borrowing Descriptor, _ size: Int64) throws(Errno) {
    let zeros = [UInt8](repeating: 0, count: 64 * 1024)
    var offset: Int64 = 0
    while offset < size {
      let count = Int(min(size &- offset, Int64(zeros.count)))
      try file.write(zeros.span.extracting(0..<count), at: offset)
      offset &+= Int64(count)
    }
    try file.synchronize()
  }
}
