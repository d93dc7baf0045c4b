import Dispatch
import Model
import Platform
import Store
import StoreConformance
import Synchronization
import Testing

@testable import Tree

/// A handle whose commit waits for its store: nothing else waits with it.
@Suite(.timeLimit(.minutes(1))) struct CommitUnderWayTests {
  private let suites = GatedSuites()
  private let tree: FileTree

  init() {
    tree = FileTree(settings: SettingsStore(engine: suites), keychain: nil)
    suites.good.replace("s", with: ["k": .string("old")])
  }

  private func node() throws -> Node {
    try ["defaults", "s", "k"].reduce(tree.root) { try tree.child(of: $0, named: $1.utf8) }
  }

  private func size(for caller: Caller) throws -> Int { try tree.status(of: node(), for: caller).size }

  /// Runs `body` while a flush of `handle` waits in the store; then lets it go on, and returns its error.
  private func whileFlushing(_ handle: Handle, _ body: () throws -> Void) throws -> StoreError? {
    suites.close()
    let error = Mutex<StoreError?>(nil)
    let isDone = DispatchSemaphore(value: 0)
    Background.run {
      do throws(StoreError) { try handle.flush(by: .current) } catch let failure {
        error.withLock { $0 = failure }
      }
      isDone.signal()
    }
    suites.waitForChange()
    let result = Result { try body() }
    suites.open()
    isDone.wait()
    try result.get()
    return error.withLock { $0 }
  }

  @Test func itsFileCanBeLookedAtAndRead() throws {
    let handle = try tree.open(node(), [.read, .write], by: .current)
    try handle.write("longer text", at: 0)
    let error = try whileFlushing(handle) {
      let (own, other) = (try size(for: .current), try size(for: .other))
      #expect(own == 11 && other == 4 && handle.isDirty)
      let text = try handle.text()
      #expect(text == "longer text")
      let type = try tree.attribute("user.keyhole.type", of: node())
      #expect(type == Array("string".utf8))
    }
    #expect(error == nil && !handle.isDirty)
    #expect(try suites.good.read("s")?.settings["k"]?.value == .string("longer text"))
    handle.close()
  }

  @Test func whatIsWrittenMeanwhileIsTheNextCommits() throws {
    let handle = try tree.open(node(), [.write, .truncate], by: .current)
    try handle.write("first", at: 0)
    let error = try whileFlushing(handle) { try handle.write(" and second", at: 5) }
    #expect(error == nil)
    #expect(try suites.good.read("s")?.settings["k"]?.value == .string("first"))
    #expect(handle.isDirty)
    try handle.finish()
    #expect(try suites.good.read("s")?.settings["k"]?.value == .string("first and second"))
  }

  @Test func whatIsAppendedMeanwhileIsAppendedOnce() throws {
    let handle = try tree.open(node(), .write, by: .current)
    try handle.write("one\n", at: nil)
    let error = try whileFlushing(handle) { try handle.write("two\n", at: nil) }
    #expect(error == nil)
    try handle.finish()
    #expect(try suites.good.read("s")?.settings["k"]?.value == .string("old\none\ntwo"))
  }

  @Test func refusalOfAnOlderCommitDoesNotDropWhatWasWrittenMeanwhile() throws {
    let handle = try tree.open(node(), [.write, .truncate], by: .current)
    try handle.write("first", at: 0)
    suites.good.refuse(.noSpace)
    let error = try whileFlushing(handle) { try handle.write("other", at: 0) }
    #expect(error == .noSpace)
    suites.good.refuse(nil)
    handle.close()
    #expect(try suites.good.read("s")?.settings["k"]?.value == .string("other"))
  }

  @Test func refusedSizeIsNotShown() throws {
    let handle = try tree.open(node(), [.write, .truncate], by: .current)
    try handle.write("longer text", at: 0)
    suites.good.refuse(.noSpace)
    #expect(errorNumber { try handle.flush(by: .current) } == StoreError.noSpace.errno.rawValue)
    #expect(try size(for: .current) == 4)
    handle.close()
    #expect(try size(for: .current) == 4)
  }

  /// 16 MiB a handle are allowed, but not for any number of handles.
  @Test func unsavedContentHasALimit() throws {
    suites.good.replace("s", with: ["k": .data([1])])
    let most = [UInt8](repeating: 1, count: FileTree.settingLimit)
    var handles: [Handle] = []
    var error: Int32?
    while error == nil, handles.count < 40 {
      let handle = try tree.open(node(), [.write, .truncate], by: .current)
      handles.append(handle)
      error = errorNumber {
        try handle.write(most.span, at: 0, by: .current)
      }
    }
    #expect(error == StoreError.noSpace.errno.rawValue && handles.count > 4)
    for handle in handles { handle.abandon() }
    handles = []
    let handle = try tree.open(node(), [.write, .truncate], by: .current)
    try handle.write(most.span, at: 0, by: .current)
    handle.abandon()
  }
}

/// Suites whose changes can be held up.
private final class GatedSuites: SuiteEngine {
  let good = MemorySuites()
  private let isClosed = Mutex(false)
  private let arrived = DispatchSemaphore(value: 0)
  private let gate = DispatchSemaphore(value: 0)

  var propertyLists: any PropertyListCoding { good.propertyLists }

  func close() { isClosed.withLock { $0 = true } }

  func waitForChange() { arrived.wait() }

  func open() {
    isClosed.withLock { $0 = false }
    gate.signal()
  }

  func update(
    _ suite: ExactString, known: SuiteContents?, _ body: (inout SuiteContents) throws(StoreError) -> Void
  ) throws(StoreError) -> SuiteContents {
    if isClosed.withLock({ $0 }) {
      arrived.signal()
      gate.wait()
    }
    return try good.update(suite, known: known, body)
  }

  func suites() throws(StoreError) -> [ExactString: SuiteStamp] { try good.suites() }
  func stamp(of suite: ExactString) throws(StoreError) -> SuiteStamp? { try good.stamp(of: suite) }
  func read(_ suite: ExactString, since known: SuiteContents?) throws(StoreError) -> SuiteContents? {
    try good.read(suite)
  }
  func create(_ suite: ExactString) throws(StoreError) -> SuiteContents { try good.create(suite) }
  func remove(_ suite: ExactString) throws(StoreError) { try good.remove(suite) }
  func rename(_ suite: ExactString, to name: ExactString) throws(StoreError) {
    try good.rename(suite, to: name)
  }
  func readOnlyReason(of suite: ExactString) throws(StoreError) -> String? { nil }
  func synchronize(_ suite: ExactString) throws(StoreError) {}
  func room() throws(StoreError) -> DiskRoom { try good.room() }
  func problems() -> [Problem] { [] }
}
