import Model
import Platform
import SecretMemory
import Store
import Synchronization
import Testing
import Tree

@testable import Service
@testable import Views

/// All values of a view are of one moment.
struct ViewMomentTests {
  /// Changes both items as another process does, of which the items in memory show nothing yet.
  private func change(_ keychain: KeychainStore, to text: String) throws(StoreError) {
    for account in ["token", "user"] as [ExactString] {
      guard let item = try keychain.item(with: .generic(service: "app", account: account)) else {
        throw .notFound
      }
      _ = try keychain.engine.rewrite(item.id, readingSecret: false) { (_, secret) throws(StoreError) in
        do { secret = try SecretBytes(copying: Array(text.utf8).span) } catch { throw .outOfMemory }
      }
    }
  }

  private func views(
    _ stored: StoredTree, _ onValue: @escaping @Sendable (Int) throws(StoreError) -> Void
  ) throws -> Views {
    let tree = stored.tree
    return Views(
      keychain: try #require(tree.keychain), settings: tree.settings,
      paths: WatchedPaths(paths: try #require(tree.views).paths, onValue: onValue))
  }

  @Test func aChangeBetweenTwoValuesIsNotMixed() throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeAppView()
    let keychain = try #require(stored.tree.keychain)
    // The states of both items, the value of the first one, and then that of the second.
    let views = try views(stored) { (count) throws(StoreError) in
      if count == 4 { try change(keychain, to: "new") }
    }
    let bytes = try views.render(views.existing("app"), nil)
    #expect(bytes.span.array == Array("TOKEN=new\nUSER=new\n".utf8))
  }

  @Test func valuesThatChangeAllTheTimeAreRefused() throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeAppView()
    let keychain = try #require(stored.tree.keychain)
    let views = try views(stored) { (count) throws(StoreError) in try change(keychain, to: "\(count)") }
    let view = try views.existing("app")
    #expect(stored.failure { _ = try views.render(view, nil) } == .EAGAIN)
  }

  private func rename(_ keychain: KeychainStore, _ old: ExactString, to new: ExactString) throws(StoreError) {
    guard let item = try keychain.item(with: .generic(service: "app", account: old)) else { throw .notFound }
    try keychain.update([item.id]) { $0.identity = .generic(service: "app", account: new) }
  }

  /// Readers and writers of a view are not disturbed by an item that gets another name all the time.
  @Test func renamesDisturbNobody() throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeAppView()
    let keychain = try #require(stored.tree.keychain)
    let views = try #require(stored.tree.views)
    let failures = Mutex<[String]>([])
    let isOver = Atomic(false)
    let writer = Promise<Int>()
    ThreadID.start {
      var count = 0
      while !isOver.load(ordering: .relaxed) {
        count += 1
        let content = Array("TOKEN=abc\nUSER=\(count)\n".utf8)
        do { try views.store(SecretBytes(copying: content.span), as: "app", since: nil, nil) } catch {
          failures.withLock { $0.append("writing: \(error)") }
        }
      }
      writer.fulfill(count)
    }
    let reader = Promise<Int>()
    ThreadID.start {
      var count = 0
      while !isOver.load(ordering: .relaxed) {
        count += 1
        do {
          let view = try views.existing("app")
          _ = try views.permission(toOpen: view, writing: false, by: .current)
          _ = try views.render(view, nil)
        } catch StoreError.system(.EAGAIN, _) {
          // The values change all the time.
        } catch {
          failures.withLock { $0.append("reading: \(error)") }
        }
      }
      reader.fulfill(count)
    }
    defer { isOver.store(true, ordering: .relaxed) }
    for _ in 0..<100 {
      try rename(keychain, "user", to: "login")
      try rename(keychain, "login", to: "user")
    }
    isOver.store(true, ordering: .relaxed)
    let written = writer.wait()
    #expect(written > 0 && reader.wait() > 0)
    #expect(failures.withLock { $0 } == [])
    #expect(try stored.text("views/app") == "TOKEN=abc\nUSER=\(written)\n")
    #expect(try stored.list("keychain/generic/app").sorted() == ["token", "user"])
  }

  /// `use`: of a path, before which the item gets another name.
  @Test(arguments: 1...12) func anItemThatIsRenamedMeanwhileIsRead(use: Int) throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeAppView()
    let keychain = try #require(stored.tree.keychain)
    let views = try views(stored) { (count) throws(StoreError) in
      if count == use { try rename(keychain, "user", to: "login") }
    }
    let view = try views.existing("app")
    _ = try views.permission(toOpen: view, writing: false, by: .current)
    #expect(try views.missingReferences(of: view).isEmpty)
    #expect(try views.status(of: view).size == 21)
    let bytes = try views.render(view, nil)
    #expect(bytes.span.array == Array("TOKEN=abc\nUSER=peter\n".utf8))
    #expect(views.problems().isEmpty)
  }

  @Test(arguments: 1...12) func anItemThatIsRenamedMeanwhileIsWritten(use: Int) throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeAppView()
    let keychain = try #require(stored.tree.keychain)
    let isRenamed = Atomic(false)
    let views = try views(stored) { (count) throws(StoreError) in
      // The former name is there again when the write is stored.
      if isRenamed.exchange(false, ordering: .relaxed) { try rename(keychain, "login", to: "user") }
      guard count == use else { return }
      try rename(keychain, "user", to: "login")
      isRenamed.store(true, ordering: .relaxed)
    }
    let content = Array("TOKEN=abc\nUSER=paul\n".utf8)
    try views.store(SecretBytes(copying: content.span), as: "app", since: nil, nil)
    if isRenamed.load(ordering: .relaxed) { try rename(keychain, "login", to: "user") }
    let bytes = try views.render(views.existing("app"), nil)
    #expect(bytes.span.array == content)
    #expect(try stored.text("keychain/generic/app/user/value") == "paul")
    #expect(try stored.list("keychain/generic/app").sorted() == ["token", "user"])
  }
}

/// Paths of a tree whose every use is seen before it is answered.
private final class WatchedPaths: ViewPaths {
  private let paths: any ViewPaths
  private let onValue: @Sendable (Int) throws(StoreError) -> Void
  private let count = Atomic(0)

  init(paths: any ViewPaths, onValue: @escaping @Sendable (Int) throws(StoreError) -> Void) {
    self.paths = paths
    self.onValue = onValue
  }

  func source(at path: String) throws(StoreError) -> ViewSource {
    try onValue(count.add(1, ordering: .relaxed).newValue)
    return try paths.source(at: path)
  }

  func path(of source: ViewSource) -> String { paths.path(of: source) }

  func checkName(_ name: String) throws(StoreError) { try paths.checkName(name) }
}
