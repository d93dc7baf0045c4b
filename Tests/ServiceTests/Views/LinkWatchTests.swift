import Model
import Platform
import Store
import Synchronization
import Testing
import Tree
import Views

@testable import Service

/// Links to views that files take the place of.
@Suite(.timeLimit(.minutes(1))) struct LinkWatchTests {
  @Test func aReplacedLinkIsReportedOnce() async throws {
    let (stored, folder) = (try StoredTree(), try TemporaryFolder())
    try stored.makeApp()
    try stored.makeAppView()
    let (views, link) = (try #require(stored.tree.views), folder.path + "/.env")
    try Files.makeLink(link, to: "/nowhere/views/app")
    try views.setLinks([link], of: views.existing("app"))
    let (reports, sink) = AsyncStream.makeStream(of: String.self)
    let changes = try #require(stored.tree.keychain).feed.watch()
    let watch = LinkWatch(views, at: "/nowhere", changes) { link, view in sink.yield(link + " " + view) }
    defer { watch.end() }
    var iterator = reports.makeAsyncIterator()
    folder.write(".env.new")
    try Files.rename(folder.path + "/.env.new", to: link)
    #expect(await iterator.next() == "\(link) app")
  }

  @Test func aLinkFollowsItsView() throws {
    let (stored, folder) = (try StoredTree(), try TemporaryFolder())
    try stored.makeApp()
    try stored.makeAppView()
    let (views, link) = (try #require(stored.tree.views), folder.path + "/.env")
    let (foreign, other) = (folder.path + "/foreign", folder.path + "/other")
    try Files.makeLink(link, to: "/mount/views/app")
    try Files.makeLink(foreign, to: "/somewhere/views/app")
    try Files.makeLink(other, to: "/mount/views/second")
    try stored.makeView("second", [(["A"], "keychain/generic/app/user")])
    try views.setLinks([link, foreign, other], of: views.existing("app"))
    try stored.rename("views/app", "views/renamed")
    let changes = try #require(stored.tree.keychain).feed.watch()
    let watch = LinkWatch(views, at: "/mount", changes) { _, _ in }
    defer { watch.end() }
    watch.refresh()
    #expect(try Files.target(ofLink: link) == "/mount/views/renamed")
    // In another mount, and to a view that there is.
    #expect(try Files.target(ofLink: foreign) == "/somewhere/views/app")
    #expect(try Files.target(ofLink: other) == "/mount/views/second")
    #expect(folder.names.filter { $0.contains("keyhole-link") }.isEmpty)
  }

  /// Links to a view that is replaced lead to the one that has its name.
  @Test func aViewThatReplacesAnotherHasItsLinks() throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeAppView()
    try stored.makeView("other", [(["A"], "keychain/generic/app/user")])
    let views = try #require(stored.tree.views)
    try views.setLinks(["/p/one"], of: views.existing("app"))
    try views.setLinks(["/p/two"], of: views.existing("other"))
    try stored.rename("views/app", "views/other")
    #expect(try views.existing("other").links == ["/p/one", "/p/two"])
  }
}
