import Dispatch
import Glibc
import Synchronization
import Testing

@testable import Notifier

@Suite(.timeLimit(.minutes(1))) struct FolderWatchTests {
  @Test func createdFileIsNamed() async throws {
    let folder = try TemporaryFolder()
    var listener = Listener(folder.path)
    folder.write("a.plist", "1")
    #expect(await listener.next() == .files(["a.plist"]))
  }

  @Test func everyKindOfChangeIsNamed() async throws {
    let folder = try TemporaryFolder()
    for name in ["written", "removed", "moved"] { folder.write(name, "1") }
    var listener = Listener(folder.path)
    for (change, expected) in [
      ({ folder.write("written", "2") }, ["written"]), ({ folder.remove("removed") }, ["removed"]),
      ({ folder.rename("moved", "new") }, ["moved", "new"]), ({ folder.write("é ü", "") }, ["é ü"]),
    ] as [(() -> Void, [String])] {
      change()
      // The last word on the file before may come late.
      #expect(await listener.names(until: Set(expected)).isSuperset(of: expected))
    }
  }

  @Test func replacementByRenameIsNamed() async throws {
    let folder = try TemporaryFolder()
    let outside = try TemporaryFolder()
    outside.write("x", "1")
    var listener = Listener(folder.path)
    unsafe rename(outside.path + "/x", folder.path + "/s.plist")
    #expect(await listener.next() == .files(["s.plist"]))
  }

  @Test func manyChangesInOneGoNameEveryFile() async throws {
    let folder = try TemporaryFolder()
    var listener = Listener(folder.path)
    let expected = Set((0..<500).map { "file \($0)" })
    for name in expected { folder.write(name, "x") }
    #expect(await listener.names(until: expected) == expected)
  }

  @Test func twoWatchesOfOneFolderBothHear() async throws {
    let folder = try TemporaryFolder()
    var (one, two) = (Listener(folder.path), Listener(folder.path))
    folder.write("a", "1")
    #expect(await one.next() == .files(["a"]))
    #expect(await two.next() == .files(["a"]))
  }

  @Test func filesOfFoldersInsideAreNotNamed() async throws {
    let folder = try TemporaryFolder()
    unsafe mkdir(folder.path + "/inside", 0o700)
    var listener = Listener(folder.path)
    folder.write("inside/x", "1")
    folder.write("mark", "1")
    #expect(await listener.next() == .files(["mark"]))
    folder.remove("inside/x")
    unsafe rmdir(folder.path + "/inside")
  }

  @Test func droppedWatchStopsWatching() async throws {
    let folder = try TemporaryFolder()
    let number = try folder.number()
    do {
      let watch = FolderWatch(folder.path) { _ in }
      #expect(isWatched(number))
      withExtendedLifetime(watch) {}
    }
    while isWatched(number) { await Task.yield() }
  }

  @Test func slowListenerIsToldToLookAtEverything() async throws {
    let folder = try TemporaryFolder()
    let gate = DispatchSemaphore(value: 0)
    var listener = Listener(folder.path) { gate.wait() }
    // More than fs.inotify.max_queued_events; equal events in a row would count as one.
    for _ in 0..<20_000 {
      folder.write("a", "")
      folder.remove("a")
    }
    folder.write("mark", "")
    for _ in 0..<10_000 { gate.signal() }
    var news: [FolderWatch.News] = []
    while !news.contains(.everything), let next = await listener.next() { news.append(next) }
    folder.write("x", "")
    while case .files(let names)? = await listener.next(), !names.contains("x") {}
  }
}

/// A path outlives what is there.
extension FolderWatchTests {
  @Test func folderThatComesLaterIsWatched() async throws {
    let above = try TemporaryFolder()
    let path = above.path + "/one/two"
    var listener = Listener(path)
    unsafe mkdir(above.path + "/other", 0o700)
    unsafe mkdir(above.path + "/one", 0o700)
    #expect(await listener.next() == .everything)
    unsafe mkdir(path, 0o700)
    #expect(await listener.next() == .everything)
    writeFile(path + "/a", "1")
    #expect(await listener.names(until: ["a"]) == ["a"])
    removeAll(above.path, ["one/two/a", "one/two", "one", "other"])
  }

  @Test func removedFolderIsWatchedWhenItIsBack() async throws {
    let folder = try TemporaryFolder()
    var listener = Listener(folder.path)
    unsafe rmdir(folder.path)
    #expect(await listener.next() == .everything)
    unsafe mkdir(folder.path, 0o700)
    while await listener.next() != .everything {}
    folder.write("a", "1")
    #expect(await listener.names(until: ["a"]).contains("a"))
  }

  @Test(arguments: [0, 1]) func folderThatTakesThePlaceOfOneThatWasMovedIsWatched(level: Int) async throws {
    let above = try TemporaryFolder()
    for part in ["/one", "/one/two"] { unsafe mkdir(above.path + part, 0o700) }
    var listener = Listener(above.path + "/one/two")
    let moved = level == 0 ? "/one" : "/one/two"
    unsafe rename(above.path + moved, above.path + "/moved")
    #expect(await listener.next() == .everything)
    for part in ["/one", "/one/two"] { unsafe mkdir(above.path + part, 0o700) }
    // Each folder on the way may be reported by itself; the mark is written until the last one is watched.
    while true {
      writeFile(above.path + "/one/two/mark", "1")
      if case .files(["mark"])? = await listener.next() { break }
    }
    let rest = level == 0 ? ["moved/two"] : []
    removeAll(above.path, ["one/two/mark", "one/two", "one"] + rest + ["moved"])
  }

  @Test func linkToTheFolderMayLeadElsewhere() async throws {
    let (one, two, above) = (try TemporaryFolder(), try TemporaryFolder(), try TemporaryFolder())
    let link = above.path + "/x"
    unsafe symlink(one.path, link)
    var listener = Listener(link)
    one.write("a", "1")
    #expect(await listener.next() == .files(["a"]))
    unsafe symlink(two.path, above.path + "/new")
    unsafe rename(above.path + "/new", link)
    while await listener.next() != .everything {}
    two.write("mark", "1")
    #expect(await listener.names(until: ["mark"]).contains("mark"))
  }

  @Test func fileBehindALinkIsTheLinksNews() async throws {
    let (folder, elsewhere) = (try TemporaryFolder(), try TemporaryFolder())
    elsewhere.write("x", "1")
    unsafe symlink(elsewhere.path + "/x", folder.path + "/s.plist")
    let watch = Heard()
    let object = FolderWatch(folder.path, followingLinks: ".plist") { watch.hear($0) }
    var names = watch.stream.makeAsyncIterator()
    elsewhere.write("x", "2")
    #expect(await names.next() == .files(["s.plist"]))
    elsewhere.write("new", "3")
    unsafe rename(elsewhere.path + "/new", elsewhere.path + "/x")
    while case .files(let heard)? = await names.next(), heard != ["s.plist"] {}
    // A link that comes later is followed, too.
    elsewhere.write("a", "1")
    unsafe symlink(elsewhere.path + "/a", folder.path + "/a.plist")
    while await names.next() != .everything {}
    elsewhere.write("a", "2")
    while case .files(let heard)? = await names.next(), heard != ["a.plist"] {}
    withExtendedLifetime(object) {}
  }
}

/// The reports of a watch, in order.
private struct Listener {
  private let watch: FolderWatch
  private var news: AsyncStream<FolderWatch.News>.Iterator

  init(_ folder: String, before: @escaping @Sendable () -> Void = {}) {
    let heard = Heard()
    watch = FolderWatch(folder) { news in
      before()
      heard.hear(news)
    }
    news = heard.stream.makeAsyncIterator()
  }

  mutating func next() async -> FolderWatch.News? { await news.next(isolation: nil) }

  /// Every name until all of these have come.
  mutating func names(until expected: Set<String>) async -> Set<String> {
    var seen: Set<String> = []
    while !seen.isSuperset(of: expected), let news = await next() {
      if case .files(let names) = news { seen.formUnion(names) }
    }
    return seen
  }
}

private final class Heard: Sendable {
  let stream: AsyncStream<FolderWatch.News>
  private let continuation: AsyncStream<FolderWatch.News>.Continuation

  init() {
    (stream, continuation) = AsyncStream.makeStream()
  }

  func hear(_ news: FolderWatch.News) { continuation.yield(news) }
}

private func writeFile(_ path: String, _ text: String) {
  guard let file = unsafe fopen(path, "w") else { return }
  unsafe fputs(text, file)
  unsafe fclose(file)
}

private func removeAll(_ folder: String, _ names: [String]) {
  for name in names { unsafe remove(folder + "/" + name) }
}

/// Whether this process has an inotify watch of the file of that number.
private func isWatched(_ number: UInt64) -> Bool {
  (0..<256).contains { descriptor in
    let text = contents(of: "/proc/self/fdinfo/\(descriptor)")
    return text.contains("inotify ") && text.contains(" ino:" + String(number, radix: 16) + " ")
  }
}

private func contents(of path: String) -> String {
  guard let file = unsafe fopen(path, "r") else { return "" }
  defer { unsafe fclose(file) }
  var bytes = [UInt8](repeating: 0, count: 4096)
  let count = unsafe fread(&bytes, 1, 4096, file)
  return String(decoding: bytes[..<count], as: UTF8.self)
}

/// A folder under TMPDIR, gone with the value and all its files.
private final class TemporaryFolder: Sendable {
  let path: String

  init() throws {
    let folder = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
    path = "\(folder)/keyhole-watch-" + String(UInt64.random(in: .min ... .max), radix: 36)
    try #require(unsafe mkdir(path, 0o700) == 0)
  }

  deinit {
    for name in ["a", "a.plist", "written", "new", "é ü", "s.plist", "x", "mark"] { remove(name) }
    for index in 0..<500 { remove("file \(index)") }
    unsafe rmdir(path)
  }

  func write(_ name: String, _ text: String) {
    guard let file = unsafe fopen(path + "/" + name, "w") else { return }
    unsafe fputs(text, file)
    unsafe fclose(file)
  }

  func remove(_ name: String) { unsafe unlink(path + "/" + name) }

  func rename(_ old: String, _ new: String) { unsafe Glibc.rename(path + "/" + old, path + "/" + new) }

  func number() throws -> UInt64 {
    var status = stat()
    try #require(unsafe stat(path, &status) == 0)
    return UInt64(status.st_ino)
  }
}
