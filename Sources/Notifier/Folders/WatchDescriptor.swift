import Platform

/// An inotify(7) descriptor that watches a folder, all that leads to it, and the files that its links lead to.
final class WatchDescriptor: Sendable {
  private let inotify: Inotify
  private let watches: Watches

  /// For a source of Dispatch.
  var number: Int32 { inotify.number }

  /// - Throws: ENOSPC, EMFILE: the user has too many watches or descriptors; EACCES.
  init(folder: String, _ kind: FolderWatch.Kind, followingLinks ending: String?) throws(Errno) {
    inotify = try Inotify()
    watches = try Watches(folder: folder, kind, followingLinks: ending, on: inotify)
  }

  /// The events of the kernel since the last time.
  struct News {
    /// Files of the folder, each once.
    var names: [String] = []
    /// The kernel told less than happened.
    var hasOverflowed = false
    /// The path may lead elsewhere now.
    var isStale = false
    /// No event was there.
    var isEmpty = true
  }

  func read() -> News {
    var news = News()
    var known: Set<String> = []
    var rest = inotify.read()[...]
    while let event = Event(rest) {
      news.isEmpty = false
      if event.hasOverflowed { news.hasOverflowed = true }
      if watches.isStale(after: event) { news.isStale = true }
      for name in watches.names(of: event) where known.insert(name).inserted { news.names.append(name) }
      rest = rest.dropFirst(event.length)
    }
    return news
  }
}

/// One `struct inotify_event`: wd, mask, cookie and len, of 32 bits each, and the name with zeros behind it.
struct Event {
  let watch: Int32
  let events: Inotify.Events
  /// Empty: it is about the watched file itself.
  let name: String
  let length: Int

  init?(_ bytes: ArraySlice<UInt8>) {
    guard bytes.count >= 16 else { return nil }
    watch = Int32(truncatingIfNeeded: bytes.word(at: 0))
    events = Inotify.Events(rawValue: bytes.word(at: 4))
    let nameLength = Int(bytes.word(at: 12))
    length = 16 + nameLength
    guard bytes.count >= length else { return nil }
    let field = bytes.dropFirst(16).prefix(nameLength)
    name = String(decoding: field.prefix { $0 != 0 }, as: UTF8.self)
  }

  var hasOverflowed: Bool { events.contains(.overflow) }
}

extension ArraySlice<UInt8> {
  fileprivate func word(at offset: Int) -> UInt32 {
    dropFirst(offset).prefix(4).reversed().reduce(0) { $0 << 8 | UInt32($1) }
  }
}
