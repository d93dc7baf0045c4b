import Platform
import Synchronization

/// Which values the kernel's page cache may hold.
///
/// The cache belongs to a file, not to a handle: with a writer, or a reader of an older value, it would
/// show one what belongs to the other. So a reader gets it only while no such handle is open, and keeps
/// what is in it only if that is the same value.
struct PageCache: Sendable {
  enum Use {
    /// Past the cache.
    case direct
    /// Through the cache, which is emptied first.
    case fresh
    /// Through the cache as it is.
    case kept
  }

  /// An operation that waits for the readers of a file.
  struct Wait: Sendable {
    fileprivate let file: UInt64
    fileprivate let number: UInt64
    fileprivate let openings: UInt64
  }

  private struct Page {
    var version: UInt64
    /// Open handles that read through the cache.
    var readers = 0
    /// One of them has been closed: so the kernel has surely emptied the cache for it.
    var isSettled = false
    /// How often the file was opened to be read through the cache.
    var openings: UInt64 = 1
    /// The operations that wait until there is no reader.
    var waiting: [(number: UInt64, action: @Sendable () -> Void)] = []
    /// A wait for the readers was given up, and no further one has come since.
    var isWaitedFor = false
    /// Mapped files that do not read through the cache, and fill it with their own values all the same.
    var mappings = 0

    var isUsed: Bool { readers > 0 || mappings > 0 }

    mutating func open(_ version: UInt64) -> Use {
      let isSame = self.version == version
      guard isSame || readers == 0, mappings == 0 else { return .direct }
      self.version = version
      isSettled = isSame && isSettled
      readers += 1
      openings += 1
      isWaitedFor = false
      return isSettled ? .kept : .fresh
    }

    mutating func leave(isClosed: Bool) -> [@Sendable () -> Void] {
      if isClosed { isSettled = mappings == 0 }
      readers -= 1
      guard readers == 0, !waiting.isEmpty else { return [] }
      defer { waiting = [] }
      return waiting.map(\.action)
    }
  }

  /// Of the files that are read through the cache, or mapped.
  private var pages: [UInt64: Page] = [:]
  /// The value that the kernel's cache surely holds of a file that is neither. There is one for each file that was read, so it is
  /// nothing else; of a file in `pages` it does not count.
  private var settled = NumberTable<UInt64>()
  private var waits: UInt64 = 0

  /// A reader of `version` opens the file.
  mutating func open(_ file: UInt64, version: UInt64) -> Use {
    guard let index = pages.index(forKey: file) else {
      let isSettled = settled[file] == version
      pages[file] = Page(version: version, readers: 1, isSettled: isSettled)
      return isSettled ? .kept : .fresh
    }
    return pages.values[index].open(version)
  }

  /// A handle that read through the cache is closed. Returns what is to be called now.
  mutating func close(_ file: UInt64) -> [@Sendable () -> Void] {
    leave(file, isClosed: true)
  }

  /// A reader goes past the cache after all, and the kernel has emptied nothing for it.
  mutating func withdraw(_ file: UInt64) -> [@Sendable () -> Void] {
    leave(file, isClosed: false)
  }

  private mutating func leave(_ file: UInt64, isClosed: Bool) -> [@Sendable () -> Void] {
    guard let index = pages.index(forKey: file) else { return [] }
    defer { settle(file) }
    return pages.values[index].leave(isClosed: isClosed)
  }

  /// Keeps of a file that is not in use any more what the next reader asks for.
  private mutating func settle(_ file: UInt64) {
    guard let index = pages.index(forKey: file), !pages.values[index].isUsed else { return }
    let page = pages.remove(at: index).value
    settled[file] = page.isSettled ? page.version : nil
  }

  /// All `count` readers read another value from now on, of which theirs was the beginning. Returns whether those are
  /// all.
  mutating func replace(_ file: UInt64, with version: UInt64, for count: Int) -> Bool {
    guard pages[file]?.readers == count else { return false }
    pages[file]?.version = version
    pages[file]?.isSettled = false
    return true
  }

  /// Calls `action` when the file is not read through the cache any more. nil: `action` is not called, as the file is not
  /// read now, or only by readers that were waited for in vain.
  mutating func wait(for file: UInt64, _ action: @escaping @Sendable () -> Void) -> Wait? {
    guard let page = pages[file], page.readers > 0, !page.isWaitedFor else { return nil }
    waits += 1
    pages[file]?.waiting.append((waits, action))
    return Wait(file: file, number: waits, openings: page.openings)
  }

  /// The wait has taken too long. Returns what is to be called now: its action and all before it, and where no reader has
  /// come since, also the later ones. Then the same readers are not waited for again.
  mutating func giveUp(_ wait: Wait) -> [@Sendable () -> Void] {
    guard let page = pages[wait.file], page.waiting.contains(where: { $0.number == wait.number }) else {
      return []
    }
    let isInVain = page.openings == wait.openings
    pages[wait.file]?.waiting.removeAll { isInVain || $0.number <= wait.number }
    pages[wait.file]?.isWaitedFor = isInVain
    return page.waiting.filter { isInVain || $0.number <= wait.number }.map(\.action)
  }

  /// A file that is read past the cache was mapped.
  mutating func beginMapping(_ file: UInt64) {
    pages[file, default: Page(version: 0)].mappings += 1
    pages[file]?.isSettled = false
  }

  /// It is closed. The next reader finds an empty cache.
  mutating func endMapping(_ file: UInt64) {
    guard let page = pages[file], page.mappings > 0 else { return }
    pages[file]?.mappings -= 1
    pages[file]?.isSettled = false
    settle(file)
  }

  /// How many open handles read `version` through the cache.
  func readers(of version: UInt64, in file: UInt64) -> Int {
    pages[file].map { $0.version == version ? $0.readers : 0 } ?? 0
  }

  func isRead(_ file: UInt64) -> Bool { pages[file].map { $0.readers > 0 } ?? false }

  /// The kernel has forgotten the file, and its pages with it.
  mutating func forget(_ file: UInt64) {
    settled[file] = nil
  }
}
