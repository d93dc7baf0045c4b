import Platform

/// Which values' sizes the kernel may have in the attributes that it caches of each file.
///
/// A read through the page cache, and fstat(2), take the size from the cached attributes. So an open that serves another
/// value than they are of has to have them dropped before it is answered: the news of a change comes later.
///
/// The kernel ignores the attributes in a reply whose request is older than the last drop, as it compares their versions
/// (`fi->attr_version`). A reply counts from before its status is read, so that one that a drop has overtaken is known
/// here too, and says that it is not to be cached. What the kernel does not ignore: a reply that makes a file, which is never
/// cached, and the first reply about a file, which it did not know at the drop.
///
/// With the attributes the kernel ignores the size. A read that has asked for them, as they were dropped before, would
/// then end at the size of the older value. So there is no drop that such a reader does not need: not where the cached
/// attributes are of the value already, and not because of replies under way where the file's readers have the same value;
/// and no reader is opened through the page cache while a drop is under way.
struct CachedAttributes: Sendable {
  /// A reply under way.
  struct Reply {
    fileprivate let file: UInt64
    fileprivate let generation: UInt32
  }

  /// Of a file, while a reply or a drop is under way, or it is ambiguous.
  private struct Entry {
    /// Replies whose status may have been read since the last drop and which the kernel has not got.
    var replies: UInt32 = 0
    /// Replies that a drop has overtaken.
    var overtaken: UInt32 = 0
    /// The number of drops, which begins again at 0 after `UInt32.max`.
    var generation: UInt32 = 0
    /// Drops under way.
    var drops: UInt32 = 0
    /// The kernel may have taken one of several replies with different values, or one that a drop has overtaken.
    var isAmbiguous = false

    var isEmpty: Bool { replies == 0 && overtaken == 0 && drops == 0 && !isAmbiguous }

    /// The entry after the attributes count as dropped.
    var dropped: Entry {
      Entry(overtaken: overtaken + replies, generation: generation &+ 1, drops: drops)
    }

    /// Whether the kernel may have attributes of another value.
    func mayDiffer(isRead: Bool) -> Bool { isAmbiguous || !isRead && (replies > 0 || drops > 0) }
  }

  private var entries: [UInt64: Entry] = [:]
  /// The value of the replies since the last drop, by file: there is one for each file that was listed.
  private var versions = NumberTable<UInt64>()

  private mutating func change(_ file: UInt64, _ body: (inout Entry) -> Void) {
    guard let index = entries.index(forKey: file) else { return }
    body(&entries.values[index])
    if entries.values[index].isEmpty { entries.remove(at: index) }
  }

  /// The status of a file is about to be read for a reply.
  mutating func beginReply(_ file: UInt64) -> Reply {
    let generation = Self.begin(&entries[file, default: Entry()])
    return Reply(file: file, generation: generation)
  }

  private static func begin(_ entry: inout Entry) -> UInt32 {
    entry.replies += 1
    return entry.generation
  }

  /// The reply is made. `version`: the value whose size it has; nil: the kernel must not cache it.
  ///
  /// Returns whether the kernel may cache it: not where a drop has overtaken it.
  mutating func endReply(_ reply: Reply, version: UInt64?) -> Bool {
    var isKept = false
    change(reply.file) { entry in
      guard entry.generation == reply.generation else { return entry.overtaken -= 1 }
      entry.replies -= 1
      isKept = version != nil
    }
    guard isKept, let version else { return false }
    let last = versions.updateValue(version, for: reply.file)
    if last != nil, last != version { entries[reply.file, default: Entry()].isAmbiguous = true }
    return true
  }

  /// Whether the attributes have to be dropped, as `version` of the file is stored, or is about to be served; nil: the file
  /// is gone. `isRead`: readers of the same value have the file open through the page cache, so that every reply that
  /// is under way is of this value or a newer one. If so, they count as dropped, and `endDrop` has to follow when the
  /// kernel has dropped them.
  mutating func beginDrop(_ file: UInt64, unlessOf version: UInt64?, isRead: Bool = false) -> Bool {
    let cached = versions[file]
    let entry = entries[file]
    let isOther = cached != nil && cached != version
    guard isOther || entry?.mayDiffer(isRead: isRead) == true else { return false }
    var next = (entry ?? Entry()).dropped
    next.drops += 1
    entries[file] = next
    versions[file] = nil
    return true
  }

  /// The kernel has dropped the attributes that `beginDrop` was called for. Replies that were made meanwhile it may have.
  /// `isKnown`: it knew the file; otherwise it may take replies that the drop has overtaken.
  mutating func endDrop(_ file: UInt64, isKnown: Bool = true) {
    change(file) { entry in
      entry.drops -= 1
      if !isKnown { entry.isAmbiguous = true }
    }
  }

  /// The readers of the file read another value from now on. Replies under way may be of the earlier one.
  mutating func noteGrowth(_ file: UInt64) {
    change(file) { entry in
      if entry.replies > 0 { entry.isAmbiguous = true }
    }
  }

  /// Whether a drop is under way, so that the kernel may ignore the attributes that it is asking for.
  func isBeingDropped(_ file: UInt64) -> Bool { (entries[file]?.drops ?? 0) > 0 }

  /// The kernel has forgotten the file.
  mutating func forget(_ file: UInt64) {
    versions[file] = nil
    change(file) { $0.isAmbiguous = false }
  }
}
