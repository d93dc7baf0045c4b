import Glibc
import Model
import Store
import StoreConformance
import Synchronization
import Testing

@testable import Tree

/// A file is replaced by rename(2) while a program that has looked it up opens it: the kernel knows the old file's size, so
/// the old file never shows the new value.
@Suite(.timeLimit(.minutes(1))) struct OpenWhileReplacedTests {
  private static let secret = "keychain/generic/S/A/value"

  private func fixture() throws -> TreeFixture {
    let fixture = TreeFixture(["k": .string("old"), "l": .string("another")])
    try fixture.makeItem("keychain/generic/S/A", "old")
    return fixture
  }

  /// As on a disk: what was looked up before the rename is opened, with its own content and size.
  @Test(arguments: ["defaults/s/.x", "defaults/s/l", nil])
  func replacedFileHasItsOwnValue(source: String?) throws {
    let fixture = try fixture()
    let (old, path) = (try fixture.node("defaults/s/k"), "defaults/s/k")
    if let source {
      if source.hasSuffix(".x") { try fixture.write(source, "another") }
      try fixture.rename(source, path)
    } else {
      try fixture.remove(path)
      try fixture.write(path, "another")
    }
    let handle = try fixture.tree.open(old, .read, by: .current)
    #expect(try handle.text() == "old\n" && fixture.tree.status(of: old, for: .current).size == 4)
    #expect(try fixture.read(path) == "another\n" && fixture.node(path) !== old)
    let writer = try fixture.tree.open(old, [.read, .write], by: .current)
    try writer.write("O", at: 0)
    #expect(try writer.text() == "Old\n")
    try writer.finish()
    #expect(try fixture.read(path) == "another\n")
  }

  /// A secret is kept nowhere but in its store: the kernel looks up the name again.
  @Test func replacedSecretCantBeOpened() throws {
    let fixture = try fixture()
    let old = try fixture.node(Self.secret)
    try fixture.write("keychain/generic/S/A/.x", "new and longer")
    try fixture.rename("keychain/generic/S/A/.x", Self.secret)
    #expect(errorNumber { _ = try fixture.tree.open(old, .read, by: .current) } == ENOENT)
    #expect(try fixture.read(Self.secret) == "new and longer" && fixture.node(Self.secret) !== old)
  }

  @Test(arguments: ["defaults/s/.x", "defaults/s/l"])
  func valueIsVisibleOnlyUnderItsOwnFile(source: String) throws {
    let fixture = try fixture()
    let old = try fixture.node("defaults/s/k")
    if source.hasSuffix(".x") { try fixture.write(source, "another") }
    let new = try fixture.node(source)
    let seen = Mutex<[String?]>([])
    // On the very step that makes the new value visible.
    let watcher = Task(executorPreference: Inline()) { [tree = fixture.tree] in
      for await change in tree.settings.feed.watch() where change.origin == .local {
        for node in [old, new] {
          let text = try? tree.open(node, .read, by: .current).text()
          seen.withLock { $0.append(text) }
        }
      }
    }
    defer { watcher.cancel() }
    try fixture.rename(source, "defaults/s/k")
    #expect(seen.withLock { $0 } == ["old\n", "another\n"])
    #expect(try fixture.node("defaults/s/k") === new && fixture.read("defaults/s/k") == "another\n")
  }

  @Test func removedFileIsGoneBeforeItsKeyIs() throws {
    let fixture = try fixture()
    let node = try fixture.node("defaults/s/k")
    let seen = Mutex<[Bool]>([])
    let watcher = Task(executorPreference: Inline()) { [settings = fixture.tree.settings] in
      for await _ in settings.feed.watch() { seen.withLock { $0.append(node.isRemoved) } }
    }
    defer { watcher.cancel() }
    try fixture.remove("defaults/s/k")
    #expect(seen.withLock { $0 } == [true])
  }

  @Test func renameThatFailsReplacesNothing() throws {
    let fixture = TreeFixture(["k": .integer(1)])
    let old = try fixture.node("defaults/s/k")
    try fixture.write("defaults/s/.x", "no integer")
    #expect(errorNumber { try fixture.rename("defaults/s/.x", "defaults/s/k") } == EINVAL)
    let handle = try fixture.tree.open(old, .read, by: .current)
    #expect(try handle.text() == "1\n" && fixture.node("defaults/s/k") === old && !old.isRemoved)
    #expect(try fixture.read("defaults/s/.x") == "no integer")
  }

  @Test func nameThatIsFreeAgainIsAnotherFiles() throws {
    let fixture = try fixture()
    let moved = try fixture.node("defaults/s/l")
    try fixture.rename("defaults/s/l", "defaults/s/k")
    #expect(!fixture.exists("defaults/s/l"))
    try fixture.write("defaults/s/l", "third")
    #expect(try fixture.node("defaults/s/l") !== moved && fixture.read("defaults/s/l") == "third\n")
  }
}

/// fstat(2), fgetxattr(2), fsetxattr(2), ftruncate(2) and futimens(2) of a file that has lost its name, where another file
/// has the name by now.
@Suite struct UnnamedFileTests {
  static let key = "defaults/s/k"
  static let secret = "keychain/generic/S/A/value"
  static let time = Timestamp(seconds: 1_000_000_000, nanoseconds: 7)

  private func fixture() throws -> TreeFixture {
    let fixture = TreeFixture(["k": .integer(12345)])
    try fixture.makeItem("keychain/generic/S/A", "old")
    try fixture.setAttribute("user.comment", "old", "keychain/generic/S/A")
    return fixture
  }

  /// Leaves another file under the name of one that is open.
  private func replace(_ path: String, in fixture: TreeFixture) throws {
    try fixture.remove(path)
    try fixture.write(path, "another one")
  }

  @Test(arguments: [(key, 6), (secret, 3)])
  func statusIsItsOwn(path: String, size: Int) throws {
    let fixture = try fixture()
    let handle = try fixture.open(path, .read)
    try replace(path, in: fixture)
    let status = try fixture.tree.status(of: handle.node, for: .current)
    #expect(status.size == size && status.links == 0)
    #expect(fixture.tree.committedSize(of: handle.node) == size)
  }

  /// rename(2) over it leaves the same as unlink(2).
  @Test func replacedFileKeepsItsStatusAndItsAttributes() throws {
    let fixture = try fixture()
    let handle = try fixture.open(Self.key, .read)
    try fixture.write("defaults/s/.x", "7")
    try fixture.rename("defaults/s/.x", Self.key)
    let tree = fixture.tree
    #expect(try tree.status(of: handle.node, for: .current).size == 6)
    #expect(try tree.attribute("user.keyhole.name", of: handle.node) == Array("k".utf8))
    #expect(try tree.attribute("user.keyhole.type", of: handle.node) == Array("integer".utf8))
    #expect(try tree.attributeNames(of: handle.node) == ["user.keyhole.type"])
  }

  @Test func attributesAreItsOwnAndChangeNothingElse() throws {
    let fixture = try fixture()
    let tree = fixture.tree
    let (key, secret) = (try fixture.open(Self.key, .read), try fixture.open(Self.secret, .read))
    try replace(Self.key, in: fixture)
    try replace(Self.secret, in: fixture)
    try tree.setAttribute(
      "user.keyhole.type", to: Array("string".utf8), of: key.node, if: .always, by: .current)
    try tree.setAttribute(
      "user.comment", to: Array("mine".utf8), of: secret.node, if: .mustExist, by: .current)
    let rules = try tree.permission(toSet: "user.keyhole.access", to: nil, of: secret.node, by: .current)
    #expect(rules == nil)
    #expect(try tree.attribute("user.keyhole.type", of: key.node) == Array("string".utf8))
    #expect(try tree.attribute("user.comment", of: secret.node) == Array("mine".utf8))
    #expect(try fixture.attribute("user.keyhole.type", Self.key) == "string")
    #expect(try fixture.attribute("user.comment", Self.secret) == "old")
    try tree.removeAttribute("user.comment", of: secret.node)
    #expect(errorNumber { _ = try tree.attribute("user.comment", of: secret.node) } == ENODATA)
    #expect(errorNumber { try tree.removeAttribute("user.comment", of: secret.node) } == ENODATA)
    #expect(try fixture.attribute("user.comment", Self.secret) == "old")
  }

  @Test(arguments: [key, secret])
  func sizeAndContentAreItsOwn(path: String) throws {
    let fixture = try fixture()
    let handle = try fixture.open(path, [.read, .write])
    try replace(path, in: fixture)
    try handle.truncate(to: 2, by: .current)
    #expect(try fixture.tree.status(of: handle.node, for: .current).size == 2)
    try handle.write("xyz", at: 2)
    try handle.flush(by: .current)
    // Written bytes stay readable, as on a disk.
    #expect(try fixture.tree.status(of: handle.node, for: .current).size == 5)
    #expect(try handle.text().hasSuffix("xyz"))
    try handle.finish()
    #expect(try fixture.read(path).hasPrefix("another one"))
  }

  @Test(arguments: [key, secret])
  func whatItsWriterNeverReadIsNotReadFromTheNewFile(path: String) throws {
    let fixture = try fixture()
    let handle = try fixture.open(path, .write)
    try replace(path, in: fixture)
    try handle.write("x", at: 0)
    #expect(try !handle.text().contains("nother"))
    try handle.finish()
    #expect(try fixture.read(path).hasPrefix("another one"))
  }

  @Test(arguments: [key, secret])
  func timesAreItsOwn(path: String) throws {
    let fixture = try fixture()
    let handle = try fixture.open(path, .read)
    try replace(path, in: fixture)
    try fixture.tree.setTimes(accessed: Self.time, modified: Self.time, of: handle.node)
    let (own, other) = (
      try fixture.tree.status(of: handle.node, for: .current), try fixture.status(path)
    )
    #expect(own.modified == Self.time && own.accessed == Self.time)
    #expect(other.modified != Self.time && other.accessed != Self.time)
  }

  @Test func scratchKeepsItsAttributesToo() throws {
    let fixture = try fixture()
    let handle = try fixture.create("defaults/s/.x")
    try fixture.setAttribute("user.comment", "mine", "defaults/s/.x")
    try fixture.remove("defaults/s/.x")
    try fixture.write("defaults/s/.x", "another")
    #expect(try fixture.tree.attribute("user.comment", of: handle.node) == Array("mine".utf8))
    #expect(errorNumber { _ = try fixture.tree.attribute("user.none", of: handle.node) } == ENODATA)
    #expect(errorNumber { _ = try fixture.attribute("user.comment", "defaults/s/.x") } == ENODATA)
  }
}

/// Runs a task on the thread that resumes it, before that goes on.
private final class Inline: TaskExecutor {
  func enqueue(_ job: consuming ExecutorJob) {
    unsafe UnownedJob(job).runSynchronously(on: asUnownedTaskExecutor())
  }
}
