import Cluster
import ClusterInMemory
import EtcdClient
import Model
import SecretMemory
import Store
import StoreConformance
import Testing

extension TestStore {
  /// The keys that `body` has put, as they are afterwards.
  func puts(_ body: () throws -> Void) rethrows -> [KeyValue] {
    let before = Set(cluster.contents)
    try body()
    return cluster.contents.filter { !before.contains($0) }
  }

  /// The one entry, not the head, that `body` has put.
  func entry(_ body: () throws -> Void) throws -> KeyValue {
    let entries = try puts(body).filter { value in
      let path = String(decoding: value.key, as: UTF8.self)
      return path.contains("/s/set/") || path.contains("/k/item/")
    }
    try #require(entries.count == 1)
    return try #require(entries.first)
  }

  /// The one sealed secret that `body` has put.
  func sealedSecret(_ body: () throws -> Void) throws -> KeyValue {
    let values = try puts(body).filter { String(decoding: $0.key, as: UTF8.self).contains("/v/") }
    try #require(values.count == 1)
    return try #require(values.first)
  }

  /// A suite with two settings, and the entries of both.
  func makeSuite(_ suites: ClusterSuites) throws -> (first: KeyValue, second: KeyValue) {
    _ = try suites.create("app")
    return (
      try entry { try suites.set("first", .string("one"), in: "app") },
      try entry { try suites.set("second", .string("two"), in: "app") }
    )
  }
}

extension SuiteEngine {
  func set(_ key: ExactString, _ value: SettingValue?, in suite: ExactString) throws {
    _ = try update(suite, known: nil) { contents in
      contents.settings[key] = value.map { Setting($0) }
    }
  }

  func value(_ key: ExactString, in suite: ExactString) throws -> SettingValue? {
    try read(suite)?.settings[key]?.value
  }
}

/// Fails unless `body` throws this kind of error.
func expect(
  _ kind: StoreError, _ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation,
  _ body: () throws -> Void
) {
  do {
    try body()
    Issue.record(
      "nothing was thrown: \(comment.map(String.init(describing:)) ?? "")", sourceLocation: sourceLocation)
  } catch let error as StoreError {
    let names = (String("\(error)".prefix { $0 != "(" }), String("\(kind)".prefix { $0 != "(" }))
    #expect(names.0 == names.1, "\(error)", sourceLocation: sourceLocation)
  } catch {
    Issue.record("\(error)", sourceLocation: sourceLocation)
  }
}
