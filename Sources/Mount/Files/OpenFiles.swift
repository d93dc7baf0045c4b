import Fuse
import Synchronization
import Tree

/// The object behind a handle of the kernel: an open file, or an open directory's listing.
///
/// The number is the object's address: so a read needs no table. It lives from the reply to an open until
/// the release.
enum OpenFiles {
  static func number(for object: some AnyObject) -> FileHandle {
    let address = unsafe UInt(bitPattern: Unmanaged.passRetained(object).toOpaque())
    return FileHandle(rawValue: UInt64(address))
  }

  static func file(_ number: FileHandle) -> OpenFile { unsafe object(number).takeUnretainedValue() }

  static func directory(_ number: FileHandle) -> OpenDirectory {
    unsafe object(number).takeUnretainedValue()
  }

  /// Gives the object back; the number is invalid from now on.
  static func closeFile(_ number: FileHandle) -> OpenFile { unsafe object(number).takeRetainedValue() }

  static func closeDirectory(_ number: FileHandle) {
    let directory: Unmanaged<OpenDirectory> = unsafe object(number)
    unsafe directory.release()
  }

  private static func object<Object: AnyObject>(_ number: FileHandle) -> Unmanaged<Object> {
    // SAFETY: the kernel hands back only numbers of opens that were answered and not yet released, and
    // never a file's number for a directory or the other way round.
    guard let pointer = unsafe UnsafeRawPointer(bitPattern: UInt(number.rawValue)) else {
      preconditionFailure("the kernel used a handle that was never given out")
    }
    return unsafe Unmanaged.fromOpaque(pointer)
  }
}

/// An open file, and whether its reads may come from the kernel's page cache.
final class OpenFile: Sendable {
  let handle: Handle
  let isCached: Bool
  private let isMapped = Atomic(false)

  init(_ handle: Handle, isCached: Bool) {
    self.handle = handle
    self.isCached = isCached
  }

  /// Whether the kernel has taken pages of a file that is read past its cache, for a mapping.
  var hasCachedPages: Bool { isMapped.load(ordering: .relaxed) }

  /// Returns whether those are the first.
  func noteCachedPages() -> Bool { !isMapped.exchange(true, ordering: .relaxed) }
}

/// The listing of a directory at the moment it was opened: so entries come neither twice nor not at all
/// while others are added and removed.
final class OpenDirectory: Sendable {
  let node: Node
  let entries: [DirectoryEntry]

  init(_ node: Node, _ entries: [DirectoryEntry]) {
    self.node = node
    self.entries = entries
  }
}
