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

  private struct Page {
    var version: UInt64
    /// Open handles that read through the cache.
    var readers = 0
  }

  private var pages: [UInt64: Page] = [:]

  /// A reader of `version` opens the file.
  mutating func open(_ file: UInt64, version: UInt64) -> Use {
    guard var page = pages[file] else {
      pages[file] = Page(version: version, readers: 1)
      return .fresh
    }
    let isSame = page.version == version
    guard isSame || page.readers == 0 else { return .direct }
    page.version = version
    page.readers += 1
    pages[file] = page
    return isSame ? .kept : .fresh
  }

  /// A handle that read through the cache is closed.
  mutating func close(_ file: UInt64) {
    pages[file]?.readers -= 1
  }

  /// The kernel has forgotten the file, and its pages with it.
  mutating func forget(_ file: UInt64) {
    if pages[file]?.readers == 0 { pages[file] = nil }
  }
}
