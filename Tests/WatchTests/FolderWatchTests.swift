import Glibc
import Testing
import Watch

@Suite(.timeLimit(.minutes(1))) struct FolderWatchTests {
  @Test func createdFileIsNamed() async throws {
    let folder = try TemporaryFolder()
    var names = try FolderWatch.names(in: folder.path).makeAsyncIterator()
    folder.write("a.plist", "1")
    #expect(await names.next() == "a.plist")
  }

  @Test func everyKindOfChangeIsNamed() async throws {
    let folder = try TemporaryFolder()
    for name in ["written", "removed", "moved"] { folder.write(name, "1") }
    var names = try FolderWatch.names(in: folder.path).makeAsyncIterator()
    var seen: Set<String> = []
    for (change, expected) in [
      ({ folder.write("written", "2") }, ["written"]), ({ folder.remove("removed") }, ["removed"]),
      ({ folder.rename("moved", "new") }, ["moved", "new"]), ({ folder.write("é ü", "") }, ["é ü"]),
    ] as [(() -> Void, [String])] {
      change()
      while !seen.isSuperset(of: expected), let name = await names.next() { seen.insert(name ?? "overflow") }
    }
    #expect(seen == ["written", "removed", "moved", "new", "é ü"])
  }

  @Test func replacementByRenameIsNamed() async throws {
    let folder = try TemporaryFolder()
    let outside = try TemporaryFolder()
    outside.write("x", "1")
    var names = try FolderWatch.names(in: folder.path).makeAsyncIterator()
    unsafe rename(outside.path + "/x", folder.path + "/s.plist")
    #expect(await names.next() == "s.plist")
  }

  @Test func manyChangesInOneGoNameEveryFile() async throws {
    let folder = try TemporaryFolder()
    var names = try FolderWatch.names(in: folder.path).makeAsyncIterator()
    let expected = Set((0..<500).map { "file \($0)" })
    for name in expected { folder.write(name, "x") }
    var seen: Set<String> = []
    while !seen.isSuperset(of: expected), let name = await names.next() {
      guard let name else { break }
      seen.insert(name)
    }
    #expect(seen == expected)
  }

  @Test func twoWatchesOfOneFolderBothHear() async throws {
    let folder = try TemporaryFolder()
    var one = try FolderWatch.names(in: folder.path).makeAsyncIterator()
    var two = try FolderWatch.names(in: folder.path).makeAsyncIterator()
    folder.write("a", "1")
    #expect(await one.next() == "a")
    #expect(await two.next() == "a")
  }

  @Test func filesOfFoldersInsideAreNotNamed() async throws {
    let folder = try TemporaryFolder()
    unsafe mkdir(folder.path + "/inside", 0o700)
    var names = try FolderWatch.names(in: folder.path).makeAsyncIterator()
    folder.write("inside/x", "1")
    folder.write("mark", "1")
    #expect(await names.next() == "mark")
    folder.remove("inside/x")
    unsafe rmdir(folder.path + "/inside")
  }

  @Test func streamEndsWithItsTask() async throws {
    let folder = try TemporaryFolder()
    let names = try FolderWatch.names(in: folder.path)
    let number = try folder.number()
    #expect(isWatched(number))
    let task = Task {
      for await _ in names {}
    }
    task.cancel()
    await task.value
    while isWatched(number) { await Task.yield() }
  }

  @Test func droppedStreamStopsWatching() async throws {
    let folder = try TemporaryFolder()
    let number = try folder.number()
    do {
      let names = try FolderWatch.names(in: folder.path)
      #expect(isWatched(number))
      withExtendedLifetime(names) {}
    }
    while isWatched(number) { await Task.yield() }
  }

  /// What the watch stands on is gone: nobody knows what is in the folder now.
  @Test func removedFolderMeansThatAnythingMayHaveChanged() async throws {
    let folder = try TemporaryFolder()
    var names = try FolderWatch.names(in: folder.path).makeAsyncIterator()
    unsafe rmdir(folder.path)
    let first = await names.next()
    #expect(first == .some(nil))
  }

  @Test(arguments: [("/nonexistent/folder", ENOENT), ("", ENOENT), ("/etc/passwd/x", ENOTDIR)])
  func folderThatIsMissingIsAnError(path: String, number: Int32) {
    #expect { try FolderWatch.names(in: path) } throws: { error in
      (error as? FolderWatch.Failure)?.errno == number
    }
  }
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
