/// Which values' sizes the kernel may have in the attributes that it caches of each file.
///
/// A read through the page cache, and fstat(2), take the size from the cached attributes. So an open that serves another
/// value than they are of has to have them dropped before it is answered: the news of a change comes later.
///
/// A reply counts from before its status is read. What the kernel gets of one that was under way while the attributes
/// were dropped it ignores, as it compares their versions (`fi->attr_version`); so `invalidates` is exact even where
/// replies overtake each other.
struct CachedAttributes: Sendable {
  /// There is one for each file that was listed.
  private struct Entry {
    /// The value of the replies so far; 0: none was cached.
    var version: UInt64 = 0
    /// Replies whose status may have been read and which the kernel has not got.
    var replies: UInt32 = 0
    /// There were replies with different values, and which one the kernel took last is unknown.
    var isAmbiguous = false

    var isEmpty: Bool { replies == 0 && version == 0 }
  }

  private var entries: [UInt64: Entry] = [:]

  /// The status of a file is about to be read for a reply.
  mutating func beginReply(_ file: UInt64) {
    entries[file, default: Entry()].replies += 1
  }

  /// The reply is made. `version`: the value whose size it has; nil: the kernel does not cache it.
  mutating func endReply(_ file: UInt64, version: UInt64?) {
    guard var entry = entries[file] else { return }
    entry.replies -= 1
    if let version {
      entry.isAmbiguous = entry.isAmbiguous || (entry.version != 0 && entry.version != version)
      entry.version = version
    }
    entries[file] = entry.isEmpty ? nil : entry
  }

  /// Whether the attributes have to be dropped before `version` of the file is served. If so, they count as dropped.
  mutating func invalidates(_ file: UInt64, serving version: UInt64) -> Bool {
    guard let entry = entries[file] else { return false }
    guard entry.replies > 0 || entry.isAmbiguous || entry.version != version else { return false }
    entries[file] = entry.replies == 0 ? nil : Entry(replies: entry.replies)
    return true
  }

  /// The kernel has forgotten the file.
  mutating func forget(_ file: UInt64) {
    if entries[file]?.replies == 0 { entries[file] = nil }
  }
}
