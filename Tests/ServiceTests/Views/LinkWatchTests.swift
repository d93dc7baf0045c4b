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
    let watch = LinkWatch(views, changes) { link, view in sink.yield(link + " " + view) }
    defer { watch.end() }
    var iterator = reports.makeAsyncIterator()
    folder.write(".env.new")
    try Files.rename(folder.path + "/.env.new", to: link)
    #expect(await iterator.next() == "\(link) app")
  }
}
