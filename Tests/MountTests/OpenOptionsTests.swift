import Fuse
import Model
import Platform
import Store
import StoreConformance
import Testing
import Tree

@testable import Mount

/// The round trips that an open spares, and those that it must not.
@Suite struct OpenOptionsTests {
  private static let item = "keychain/generic/S/A"
  private static let setting = "defaults/s/k"
  private static let secret = item + "/value"

  private let tree: FileTree
  private let cache: KernelCache

  init() throws {
    let suites = MemorySuites()
    suites.replace("s", with: ["k": .string("text")])
    tree = FileTree(
      settings: SettingsStore(engine: suites), keychain: KeychainStore(engine: MemoryKeychain()))
    cache = KernelCache(tree)
    var directory = try node("keychain/generic")
    for name in ["S", "A"] { directory = try tree.makeDirectory(name.utf8, in: directory) }
    let handle = try tree.create(
      "value".utf8, in: directory, [.write, .truncate], exclusive: false, by: .current)
    try handle.write(Array("hunter2".utf8).span, at: 0, by: .current)
    try handle.flush(by: .current)
    handle.close()
    _ = try tree.makeFile(".scratch".utf8, in: node("defaults/s"), by: .current)
  }

  private func node(_ path: String) throws -> Node {
    try path.split(separator: "/").reduce(tree.root) { try tree.child(of: $0, named: $1.utf8) }
  }

  private func options(_ path: String, _ mode: OpenMode) throws -> OpenOptions {
    let handle = try tree.open(node(path), mode, by: .current)
    let (file, options, _) = cache.open(handle)
    cache.close(file)
    handle.close()
    return options
  }

  @Test(arguments: [setting, secret, "defaults/s/.scratch", ".keyhole/status", ".keyhole/events"])
  func closeOfAReaderSendsNoFlush(path: String) throws {
    #expect(try options(path, .read).contains(.noFlush))
  }

  @Test(
    arguments: [setting, secret, "defaults/s/.scratch"],
    [OpenMode.write, [.read, .write], [.write, .truncate]])
  func closeOfAWriterSendsItsFlush(path: String, mode: OpenMode) throws {
    #expect(try !options(path, mode).contains(.noFlush))
  }

  @Test func secretsAreReadPastThePageCache() throws {
    for _ in 0..<3 { #expect(try options(Self.secret, .read) == [.directIO, .noFlush]) }
  }

  /// Attributes with the size of what only their caller has written: the kernel would end the reads of others there.
  @Test func sizesThatEndReadsOfOthersAreKnown() throws {
    let node = try node(Self.setting)
    let first = try tree.open(node, .read, by: .current)
    let (reader, _, _) = cache.open(first)
    #expect(reader.isCached)
    let stored = try cache.attributes(of: node, for: .current).0.size
    #expect(
      try !cache.endsReads(of: node, at: stored) && !cache.endsReads(cache.entry(of: node, for: .current)))
    let second = try tree.open(node, .write, by: .current)
    let (writer, _, _) = cache.open(second)
    try second.truncate(to: 1, by: .current)
    let (attributes, timeout) = try cache.attributes(of: node, for: .current)
    #expect(attributes.size == 1 && stored > 1 && timeout == 0)
    #expect(try cache.endsReads(of: node, at: 1) && cache.endsReads(cache.entry(of: node, for: .current)))
    cache.close(reader)
    first.close()
    #expect(!cache.endsReads(of: node, at: 1))
    second.abandon()
    cache.close(writer)
  }

  @Test func pagesOfASettingAreKeptFromTheSecondOpenOn() throws {
    #expect(try options(Self.setting, .read) == .noFlush)
    for _ in 0..<3 { #expect(try options(Self.setting, .read) == [.keepCache, .noFlush]) }
    #expect(try options(Self.setting, .write) == .directIO)
  }
}
