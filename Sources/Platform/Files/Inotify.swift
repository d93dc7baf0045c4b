import Glibc

/// inotify(7): a queue of the kernel with events of files and folders. Closed with its last reference.
package final class Inotify: Sendable {
  package struct Events: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package func hasAny(of others: Events) -> Bool { rawValue & others.rawValue != 0 }

    package static let changed = Events(rawValue: UInt32(IN_MODIFY))
    /// Permissions, owner, times, or the number of names.
    package static let attributes = Events(rawValue: UInt32(IN_ATTRIB))
    package static let closedAfterWriting = Events(rawValue: UInt32(IN_CLOSE_WRITE))
    package static let created = Events(rawValue: UInt32(IN_CREATE))
    package static let deleted = Events(rawValue: UInt32(IN_DELETE))
    package static let movedAway = Events(rawValue: UInt32(IN_MOVED_FROM))
    package static let movedHere = Events(rawValue: UInt32(IN_MOVED_TO))
    /// Of the watched file itself.
    package static let movedSelf = Events(rawValue: UInt32(IN_MOVE_SELF))
    package static let deletedSelf = Events(rawValue: UInt32(IN_DELETE_SELF))

    /// How it is watched: together with what is watched there already.
    package static let added = Events(rawValue: UInt32(IN_MASK_ADD))
    /// How it is watched: a symbolic link itself.
    package static let noFollow = Events(rawValue: UInt32(IN_DONT_FOLLOW))

    /// Reported in any case: the file system was unmounted, the watch has ended, or the queue is full and events are lost.
    package static let unmounted = Events(rawValue: UInt32(IN_UNMOUNT))
    package static let ended = Events(rawValue: UInt32(IN_IGNORED))
    package static let overflow = Events(rawValue: UInt32(IN_Q_OVERFLOW))
  }

  private let descriptor: Descriptor

  /// Readable while there are events. For `Poll` and for Dispatch.
  package var number: Int32 { descriptor.number }

  /// inotify_init1(2) with IN_NONBLOCK. - Throws: EMFILE: the user has too many (fs.inotify.max_user_instances).
  package init() throws(Errno) {
    descriptor = Descriptor(
      owning: try Errno.retrying { inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC)) })
  }

  /// inotify_add_watch(2): the number that events of the file or folder will have; the same one for the same file.
  ///
  /// - Throws: ENOSPC: the user has too many (fs.inotify.max_user_watches); ENOENT, ENOTDIR, EACCES, ELOOP.
  package func watch(_ path: String, _ events: Events) throws(Errno) -> Int32 {
    let number = number
    // SAFETY: the string is alive during the call.
    return try Errno.retrying { unsafe inotify_add_watch(number, path, events.rawValue) }
  }

  /// The events that are there, as `struct inotify_event`, the next of them up to 8 KiB; empty: none is there.
  package func read() -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 8 * 1024)
    var span = bytes.mutableSpan
    guard let count = try? descriptor.read(into: &span) else { return [] }
    return Array(bytes.prefix(count))
  }
}
