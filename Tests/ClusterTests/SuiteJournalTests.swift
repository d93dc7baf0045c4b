import Cluster
import ClusterInMemory
import EtcdClient
import Model
import Store
import Testing

/// Changes of more settings than one transaction takes.
@Suite(.timeLimit(.minutes(1))) struct SuiteJournalTests {
  private func set(_ range: Range<Int>, to value: Int128, _ suites: ClusterSuites) throws {
    _ = try suites.update("app", known: nil) { contents in
      for number in range { contents.settings[ExactString("k\(number)")] = Setting(.integer(value)) }
    }
  }

  @Test func manyChangesAreMadeTogether() throws {
    let store = try TestStore()
    let client = MemoryCluster.Client(store.cluster)
    let (suites, reader) = (try store.suites(client), try store.suites())
    defer {
      suites.close()
      reader.close()
    }
    _ = try suites.create("app")
    try set(0..<50, to: 1, suites)
    #expect(try reader.read("app")?.settings.count == 50)
    // The transactions that would bring the changes into their entries fail.
    client.injectAfterNext(.fails(.unavailable("away")))
    try set(0..<450, to: 2, suites)
    #expect(try suites.read("app")?.settings.count == 450)
    let fresh = try store.suites()
    defer { fresh.close() }
    for engine in [suites, fresh] {
      let settings = try #require(try engine.read("app")?.settings)
      #expect(settings.count == 450 && settings.values.allSatisfy { $0.value == .integer(2) })
    }
    // Another client brings them in before it changes something.
    try fresh.set("k7", nil, in: "app")
    try fresh.set("k8", .integer(3), in: "app")
    let last = try store.suites()
    defer { last.close() }
    for engine in [suites, reader, fresh, last] {
      _ = try engine.update("app", known: nil) { _ in }
      let settings = try #require(try engine.read("app")?.settings)
      #expect(settings.count == 449 && settings["k8"]?.value == .integer(3))
    }
    let entries = store.cluster.contents.filter {
      String(decoding: $0.key, as: UTF8.self).contains("/s/set/")
    }
    #expect(entries.count == 449, "nothing of the journal is left")
  }

  @Test func thousandsOfChangesAreOneCommit() throws {
    let store = try TestStore()
    let (suites, reader) = (try store.suites(), try store.suites())
    defer {
      suites.close()
      reader.close()
    }
    _ = try suites.create("app")
    try set(0..<2_000, to: 1, suites)
    #expect(try reader.read("app")?.settings.count == 2_000)
    _ = try suites.update("app", known: nil) { $0.settings = [:] }
    try suites.remove("app")
    #expect(try suites.suites().isEmpty)
  }

  @Test func changesThatDoNotFitAreRefused() throws {
    let store = try TestStore()
    let suites = try store.suites()
    defer { suites.close() }
    _ = try suites.create("app")
    expect(.tooLarge(limit: 0)) {
      _ = try suites.update("app", known: nil) { contents in
        for number in 0..<200 {
          contents.settings[ExactString("k\(number)")] = Setting(.data([UInt8](repeating: 1, count: 10_000)))
        }
      }
    }
    #expect(try suites.read("app")?.settings.isEmpty == true)
  }

  @Test func aJournalThatIsForgedIsRefused() throws {
    let store = try TestStore()
    let client = MemoryCluster.Client(store.cluster)
    let suites = try store.suites(client)
    defer { suites.close() }
    _ = try suites.create("app")
    client.injectAfterNext(.fails(.unavailable("away")))
    let parts = try store.puts { try set(0..<150, to: 1, suites) }.filter {
      String(decoding: $0.key, as: UTF8.self).contains("/s/set/")
    }
    #expect(parts.count == 2)
    let part = try #require(parts.first)
    store.cluster.forge([], removing: [part.key])
    let fresh = try store.suites()
    defer { fresh.close() }
    expect(.damaged(what: "")) { _ = try fresh.read("app") }
  }
}
