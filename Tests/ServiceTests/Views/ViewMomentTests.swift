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
