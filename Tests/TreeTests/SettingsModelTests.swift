import Glibc
import Model
import Store
import StoreConformance
import TestSupport
import Testing
import Tree

/// Random operations on `defaults`, compared step by step with `SettingsModel`.
@Suite(.timeLimit(.minutes(2))) struct SettingsModelTests {
  @Test(arguments: 1...100 as ClosedRange<UInt64>)
  func randomOperationsDoWhatTheModelSays(seed: UInt64) throws {
    var run = SettingsRun(seed: seed)
    for _ in 0..<300 {
      try run.step()
      let difference = try run.difference()
      try #require(difference == nil, "seed \(seed): \(difference ?? "")\n\(run.history)")
    }
    try run.closeAll()
    let difference = try run.difference()
    #expect(difference == nil, "seed \(seed), at the end: \(difference ?? "")\n\(run.history)")
  }
}

/// One run: a tree and a model that get the same operations.
private struct SettingsRun {
  typealias Name = SettingsModel.Name

  private var random: SplitMix64
  private let fixture = TreeFixture([:])
  private var model = SettingsModel()
  private var open: [(handle: Handle, writer: SettingsModel.Writer)] = []
  private var operations: [String] = []
  private var disagreement: String?

  init(seed: UInt64) { random = SplitMix64(seed: seed) }

  var history: String { operations.suffix(25).joined(separator: "\n") }

  mutating func step() throws {
    switch Int.random(in: 0..<100, using: &random) {
    case ..<14: openFile()
    case ..<34: write()
    case ..<40: truncate()
    case ..<50: flush()
    case ..<60: close(Int.random(in: 0..<100, using: &random))
    case ..<76: rename()
    case ..<84: remove()
    case ..<90: writeScratch()
    case ..<95: setType()
    default: makeOrRemoveSuite()
    }
  }

  mutating func closeAll() throws {
    while !open.isEmpty { close(0) }
  }

  /// Where tree and model differ; nil: nowhere.
  func difference() throws -> String? {
    if let disagreement { return disagreement }
    for suite in ["s", "t"] {
      let values = try fixture.suites.read(ExactString(suite))?.settings.reduce(into: [:]) { values, entry in
        values[entry.key.string] = entry.value.value
      }
      guard values == model.stored[suite] else {
        return "\(suite) stores \(values as Any), not \(model.stored[suite] as Any)"
      }
      guard values != nil else { continue }
      let names = try fixture.list("defaults/\(suite)")
      guard Set(names) == model.list(suite), Set(names).count == names.count else {
        return "\(suite) lists \(names), not \(model.list(suite))"
      }
      for name in names.map({ Name(suite: suite, name: $0) }) {
        let expected = String(decoding: model.scratch[name] ?? model.content(name), as: UTF8.self)
        let content = try fixture.read(name.path)
        guard content == expected else {
          return "\(name) reads as \(content.debugDescription), not \(expected.debugDescription)"
        }
        let size = try fixture.status(name.path, for: .other).size
        guard size == expected.utf8.count else { return "\(name) has \(size) bytes" }
      }
    }
    return nil
  }
}

extension SettingsRun {
  /// Does the same to both, and notes where one fails and the other doesn't.
  @discardableResult
  private mutating func compare(
    _ operation: String, _ real: () throws -> Void, _ expected: (inout SettingsModel) throws -> Void
  ) -> Bool {
    operations.append(operation)
    var number: Int32?
    do { try expected(&model) } catch { number = (error as? SettingsModel.Failure)?.number ?? -1 }
    let seen = errorNumber(real)
    if seen != number { disagreement = "\(operation): errno \(seen as Any), not \(number as Any)" }
    return seen == nil
  }

  private mutating func name(scratch: Bool? = nil) -> Name {
    let names = scratch.map { $0 ? [".x", "a~"] : ["a", "b", "c"] } ?? ["a", "b", "c", ".x", "a~"]
    let suite = Int.random(in: 0..<4, using: &random) == 0 ? "t" : "s"
    return Name(suite: suite, name: names.randomElement(using: &random) ?? "a")
  }

  private mutating func text() -> String {
    ["1", "2\n", "12", "text", "two\nlines\n", "true\n", "[1]", " ", "", "1.5", "\0"]
      .randomElement(using: &random) ?? ""
  }

  private mutating func openFile() {
    let name = name(scratch: false)
    guard open.count < 4, model.files[name]?.writer == nil else { return }
    let (truncating, exclusive) = (Bool.random(using: &random), Int.random(in: 0..<4, using: &random) == 0)
    let mode: OpenMode = truncating ? [.read, .write, .truncate] : [.read, .write]
    var (handle, writer): (Handle?, SettingsModel.Writer?)
    let fixture = fixture
    compare("open \(name) truncating: \(truncating) exclusive: \(exclusive)") {
      handle = try fixture.create(name.path, mode, exclusive: exclusive)
    } _: {
      writer = try $0.open(name, truncating: truncating, exclusive: exclusive)
    }
    if let handle, let writer { open.append((handle, writer)) }
  }

  private mutating func write() {
    guard let (handle, writer) = open.randomElement(using: &random) else { return }
    let text = "\(Int.random(in: 0...9, using: &random))" + text()
    let offset = Bool.random(using: &random) ? nil : Int.random(in: 0...3, using: &random)
    // Whether a write fails at once is the reader's business; that it may is the model's.
    let seen = errorNumber { try handle.write(text, at: offset) }
    operations.append("write \(writer.name) \(text.debugDescription) at \(offset as Any): \(seen as Any)")
    let hadFailed = writer.hasFailed
    try? model.write(Array(text.utf8), at: offset, writer)
    writer.hasFailed = hadFailed || seen != nil
    // Writes to a removed file are never stored, so they may be refused.
    if hadFailed != (seen != nil), hadFailed || (!writer.file.isRemoved && model.couldCommit(writer)) {
      disagreement = "the last write gave \(seen as Any)"
    }
  }

  private mutating func truncate() {
    guard let (handle, writer) = open.randomElement(using: &random) else { return }
    let count = Int.random(in: 0...4, using: &random)
    compare("truncate \(writer.name) to \(count)") {
      try handle.truncate(to: count, by: .current)
    } _: {
      try $0.truncate(count, writer)
    }
  }

  private mutating func flush() {
    guard let (handle, writer) = open.randomElement(using: &random) else { return }
    compare("flush \(writer.name)", { try handle.flush(by: .current) }, { try $0.flush(writer) })
  }

  private mutating func close(_ index: Int) {
    guard !open.isEmpty else { return }
    let (handle, writer) = open.remove(at: index % open.count)
    compare("close \(writer.name)", { handle.close() }, { $0.close(writer) })
  }

  private mutating func rename() {
    let (old, new) = (name(), name())
    let fixture = fixture
    compare("rename \(old) \(new)", { try fixture.rename(old.path, new.path) }, { try $0.rename(old, new) })
  }

  private mutating func remove() {
    let (name, fixture) = (name(), fixture)
    compare("remove \(name)", { try fixture.remove(name.path) }, { try $0.remove(name) })
  }

  private mutating func writeScratch() {
    let (name, text, fixture) = (name(scratch: true), text(), fixture)
    compare("write \(name) \(text.debugDescription)") {
      try fixture.write(name.path, text)
    } _: { model in
      guard model.stored[name.suite] != nil else { throw SettingsModel.Failure.missing }
      model.scratch[name] = Array(text.utf8)
    }
  }

  private mutating func setType() {
    let (name, fixture) = (name(scratch: false), fixture)
    guard let type = SettingType.allCases.randomElement(using: &random) else { return }
    compare("type \(name) \(type)") {
      try fixture.setAttribute("user.keyhole.type", type.rawValue, name.path)
    } _: {
      try $0.setType(type, name)
    }
  }

  private mutating func makeOrRemoveSuite() {
    let (path, fixture) = ("defaults/t", fixture)
    if Bool.random(using: &random) {
      compare("mkdir t", { try fixture.makeDirectory(path) }, { try $0.makeSuite("t") })
    } else {
      compare("rmdir t", { try fixture.removeDirectory(path) }, { try $0.removeSuite("t") })
    }
  }
}

extension SettingsModel.Failure {
  fileprivate var number: Int32 {
    switch self {
    case .missing: ENOENT
    case .exists: EEXIST
    case .invalid: EINVAL
    case .notEmpty: ENOTEMPTY
    }
  }
}
