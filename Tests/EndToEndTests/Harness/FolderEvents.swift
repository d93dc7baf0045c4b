import Glibc

/// Counts how often a file of a folder is replaced: inotify(7).
final class FolderEvents: Sendable {
  private let queue: OpenFile

  init(_ folder: String) throws(Errno) {
    queue = OpenFile(descriptor: try System.check { inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC)) })
    // Both: the kernel makes one of two equal events that follow each other.
    let events = UInt32(IN_MOVED_TO | IN_MOVED_FROM)
    _ = try System.check { unsafe inotify_add_watch(queue.descriptor, folder, events) }
  }

  /// How often something was moved to this name since the last call.
  func replacements(of name: String) -> Int {
    var count = 0
    while let bytes = try? queue.read() {
      var at = 0
      // struct inotify_event: wd, mask, cookie and len, of 32 bits each, and the name with zeros behind it.
      while at + 16 <= bytes.count {
        let (mask, length) = (Self.number(bytes[at + 4..<at + 8]), Self.number(bytes[at + 12..<at + 16]))
        let found = bytes[at + 16..<at + 16 + length].prefix { $0 != 0 }
        if mask & Int(IN_MOVED_TO) != 0, found.elementsEqual(name.utf8) { count += 1 }
        at += 16 + length
      }
    }
    return count
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> Int {
    bytes.reversed().reduce(0) { $0 << 8 | Int($1) }
  }
}
