import Glibc
import Model
import StoreConformance
import TestSupport
import Testing
import Tree

/// Random operations on `keychain/generic`, compared step by step with `KeychainModel`.
@Suite(.timeLimit(.minutes(2))) struct KeychainModelTests {
  @Test(arguments: 1...60 as ClosedRange<UInt64>)
  func randomOperationsDoWhatTheModelSays(seed: UInt64) throws {
    var run = KeychainRun(seed: seed)
    for _ in 0..<300 {
      try run.step()
      let difference = try run.difference()
      try #require(difference == nil, "seed \(seed): \(difference ?? "")\n\(run.history)")
    }
    run.closeAll()
    let difference = try run.difference()
    #expect(difference == nil, "seed \(seed), at the end: \(difference ?? "")\n\(run.history)")
  }
}

/// One run: a tree and a model that get the same operations.
struct KeychainRun {
  typealias Name = KeychainModel.Name

  var random: SplitMix64
  let fixture = TreeFixture()
  var model = KeychainModel()
  var open: [(handle: Handle, file: KeychainModel.File, name: Name)] = []
  var operations: [String] = []
  var disagreement: String?

  init(seed: UInt64) { random = SplitMix64(seed: seed) }

  var history: String { operations.suffix(25).joined(separator: "\n") }

  mutating func step() throws {
    switch Int.random(in: 0..<100, using: &random) {
    case ..<10: directory()
    case ..<16: move()
    case ..<32: openFile()
    case ..<52: write()
    case ..<62: flush()
    case ..<72: close(Int.random(in: 0..<100, using: &random))
    case ..<80: scratch()
    case ..<88: rename()
    case ..<94: remove()
    default: attribute()
    }
  }

  mutating func closeAll() {
    while !open.isEmpty { close(0) }
  }

  /// Where tree and model differ; nil: nowhere.
  func difference() throws -> String? {
    if let disagreement { return disagreement }
    guard try Set(fixture.list("keychain/generic")) == model.folders else {
      return "folders \(try fixture.list("keychain/generic")), not \(model.folders)"
    }
    for service in model.folders {
      let names = Set(model.items.keys.filter { $0.service == service }.map(\.account))
      let listed = try fixture.list("keychain/generic/\(service)")
      guard Set(listed) == names else { return "\(service) lists \(listed), not \(names)" }
    }
    for (name, item) in model.items {
      if let difference = try difference(name, item) { return "\(name): \(difference)" }
    }
    return try storedDifference()
  }

  private func difference(_ name: Name, _ item: KeychainModel.Item) throws -> String? {
    let files = try fixture.list(name.path)
    guard Set(files) == item.files else { return "lists \(files), not \(item.files)" }
    for file in files {
      let expected = file == "value" ? item.content : item.scratch[file] ?? []
      let content = try fixture.open(name.path + "/" + file, .read).bytes()
      guard content == expected else { return "\(file) reads as \(content), not \(expected)" }
      let size = try fixture.status(name.path + "/" + file, for: .other).size
      guard size == expected.count else { return "\(file) has \(size) bytes, not \(expected.count)" }
    }
    let comment = try? fixture.attribute("user.comment", name.path)
    return comment == item.comment ? nil : "comment \(comment as Any), not \(item.comment as Any)"
  }

  private func storedDifference() throws -> String? {
    let stored = try fixture.items.items()
    let expected = model.items.filter { $0.value.secret != nil }
    guard stored.count == expected.count else { return "\(stored.count) items, not \(expected.count)" }
    for item in stored {
      guard case .generic(let service, let account) = item.identity else { return "another class" }
      let name = Name(service: service.string, account: account.string)
      guard try fixture.items.bytes(of: item.id) == expected[name]?.secret else { return "\(name): secret" }
      guard item.keepsLineEnd == expected[name]?.keepsLineEnd else { return "\(name): eol" }
    }
    return nil
  }
}

extension KeychainRun {
  /// Does the same to both, and notes where one fails and the other doesn't.
  mutating func compare(
    _ operation: String, _ real: () throws -> Void, _ expected: (inout KeychainModel) throws -> Void
  ) {
    operations.append(operation)
    var number: Int32?
    do { try expected(&model) } catch { number = (error as? KeychainModel.Failure)?.number ?? -1 }
    let seen = errorNumber(real)
    if seen != number { disagreement = "\(operation): errno \(seen as Any), not \(number as Any)" }
  }
}

extension KeychainModel.Failure {
  fileprivate var number: Int32 {
    switch self {
    case .missing: ENOENT
    case .exists: EEXIST
    case .notEmpty: ENOTEMPTY
    }
  }
}
