import Glibc
import Model
import Platform
import SecretMemory
import StoreConformance
import Synchronization
import Testing

@testable import Store

/// Rules for programs: how they decide, and what their change and that of other protection takes.
@Suite(.timeLimit(.minutes(1))) struct AccessRuleTests: AccessTesting {
  let engine = MemoryKeychain()
  let time = TestTime()

  @Test func rulesDecideByTheFile() throws {
    let person = TestPerson()
    let own = try #require(FileID("/bin/sh"))
    var shell = caller(1)
    shell.executable?.file = own
    let denied = try add("denied", [], programs: "deny /bin/sh\nallow *\n")
    let allowed = try add("allowed", [.devicePasscode], programs: "allow /usr/bin/../bin/sh\n")
    let asked = try add("asked", [], programs: "ask /bin/sh")
    let wrongDigest = try add(
      "digest", [],
      programs: ExactString("allow sha256:" + String(repeating: "0", count: 64) + " /bin/sh\ndeny *"))
    let store = store(person)
    #expect(errno { _ = try begin(store, denied, shell) } == EACCES)
    #expect(try ask(store, denied, caller(2)) == nil)
    #expect(try ask(store, allowed, shell) == nil && person.count == 0)
    #expect(errno { _ = try begin(store, wrongDigest, shell) } == EACCES)
    #expect(try ask(store, asked, shell) == nil && person.count == 1)
    #expect(person.questions.withLock { $0.first?.demand } == .consent)
  }

  @Test func rulesThatCantBeReadAskEverybody() throws {
    let person = TestPerson()
    let free = try add("free", [])
    let odd = try add("odd", [], programs: "no rules")
    let store = store(person)
    #expect(try ask(store, odd, caller(1)) == nil && person.count == 1)
    #expect(try ask(store, free, caller(1)) == nil && person.count == 1)
    var rules = KeychainSamples.generic("")
    (rules.identity, rules.attributes) = (.rules, ["generic/free": [0xFF]])
    _ = try engine.add(rules, "x")
    #expect(try ask(self.store(person), free, caller(2)) == nil && person.count == 2)
  }

  /// An item that may have rules is not given as if it had none.
  @Test func indexThatCantBeReadLetsNobodyIn() throws {
    _ = try add("free", [])
    let item = try #require(try engine.items().first)
    let failure = StoreError.unreachable(reason: "it hangs")
    engine.fail(with: failure)
    let store = store(TestPerson())
    #expect(throws: failure) {
      _ = try store.permission(for: item, to: .read, path: "free", by: Caller(caller(1)))
    }
    #expect(throws: failure) { try store.checkAccess(to: item) }
    engine.fail(with: nil)
    try store.checkAccess(to: item)
  }

  /// A caller without an executable: no `allow PATH` fits it, and other rules for paths may mean it.
  @Test(arguments: [
    ("allow /bin/sh", true, 1), ("allow *", true, 1), ("deny /bin/sh\nallow *", true, 1), ("ask *", true, 1),
    ("deny /bin/sh", true, 1), ("ask /bin/sh", true, 1), ("deny *", false, 0),
    ("deny unidentified", false, 0),
    ("allow /bin/sh\nallow unidentified", true, 0), ("allow unidentified\ndeny *", true, 0),
    ("ask unidentified\nallow *", true, 1),
  ])
  func unidentifiedCallerHasRulesOfItsOwn(rules: String, isLetIn: Bool, questions: Int) throws {
    let item = try add("a", [], programs: ExactString(rules))
    let person = TestPerson()
    let store = store(person)
    var unknown = caller(1)
    unknown.executable = nil
    if isLetIn {
      #expect(try ask(store, item, unknown) == nil)
    } else {
      #expect(errno { _ = try begin(store, item, unknown) } == EACCES)
    }
    #expect(person.count == questions)
  }

  /// A list of allowed programs keeps the others out, wherever in the chain it is.
  @Test func listOfAllowedProgramsEndsInAQuestion() throws {
    let (own, inherited) = (try add("own", [], programs: "allow /bin/sh"), try add("inherited", []))
    let denied = try add("denied", [], programs: "deny /bin/sh")
    let person = TestPerson()
    let store = store(person)
    try store.setRules("allow /bin/sh", of: .folder(.generic, "inherited"), nil)
    #expect(try ask(store, own, caller(1)) == nil && person.count == 1)
    #expect(try ask(store, inherited, caller(1)) == nil && person.count == 2)
    // A list of denied programs leaves the others alone.
    #expect(try ask(store, denied, caller(1)) == nil && person.count == 2)
  }

  @Test func protectionChangesWithAPermitForThatOnly() throws {
    let a = try add("a")
    let person = TestPerson()
    let store = store(person)
    let item = try store.read { $0[a] }
    var free = try #require(item)
    let before = free
    free.access = []
    let reading = try begin(store, a, caller(1)).1().get()
    for permit in [nil, reading] {
      #expect(errno { try store.update([a], permit) { $0.access = [] } } == EACCES)
      #expect(errno { try store.update([a], permit) { $0.programs = "allow *" } } == EACCES)
      #expect(errno { try store.update([a], permit) { $0.accessibility = .afterFirstUnlock } } == EACCES)
      #expect(
        errno { try store.rewrite(a, readingSecret: true, permit) { item, _ in item.access = [] } } == EACCES)
    }
    try store.update([a]) { $0.label = "free" }
    let permit = try store.permission(
      for: before, changingTo: free, path: "a", by: Caller(caller(1))
    ).fetch()
    let question = person.questions.withLock { $0.last }
    #expect(person.count == 2 && question?.operation == .change && question?.reuse == 0)
    #expect(question?.change?.lines == ["access flags: devicePasscode → none"])
    try store.update([a], permit) { $0.access = [] }
    _ = try store.secret(of: a)
  }

  /// An item stays in its folder while that has rules, also in the change that has its secret.
  @Test func rewriteKeepsTheRulesOfTheFolder() throws {
    let a = try add("a", [])
    let store = store(TestPerson())
    try store.setRules("ask *", of: .folder(.generic, "a"), nil)
    let permit = try begin(store, a, caller(1)).1().get()
    #expect(
      errno {
        try store.rewrite(a, readingSecret: true, permit) { item, _ in
          item.identity = .generic(service: "elsewhere", account: "a")
        }
      } == EACCES)
  }

  /// Rules name programs that use a secret. They never keep their owner from changing them.
  @Test func rulesNeverDenyTheirChange() throws {
    let a = try add("a", [], programs: "deny *")
    let person = TestPerson()
    let store = store(person)
    var free = try #require(try store.read { $0[a] })
    let before = free
    free.programs = nil
    _ = try store.permission(for: before, changingTo: free, path: "a", by: Caller(caller(1))).fetch()
    #expect(person.questions.withLock { $0.map(\.demand) } == [.consent])
    try store.setRules("deny *", of: .keychain, nil)
    _ = try store.permission(toChangeRulesOf: .keychain, to: nil, path: "keychain", by: Caller(caller(1)))
      .fetch()
    #expect(person.count == 2)
  }

  /// In a cluster's keychain the same path may be another program on each machine.
  @Test func rulesOfOtherHostsDoNotMatch() throws {
    let (own, other) = ("11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222")
    let file = try #require(FileID("/bin/sh"))
    var shell = caller(1)
    shell.executable?.file = file
    func action(_ rules: String, on host: ExactString?) throws -> ProgramRules.Action {
      let id = try add(ExactString("\(rules) \(host?.string ?? "")"), [], programs: ExactString(rules))
      let item = try #require(try engine.items().first { $0.id == id })
      return item.action(for: shell, on: host, inherited: [])
    }
    #expect(try action("allow host:\(own) /bin/sh", on: ExactString(own)) == .allow)
    #expect(try action("allow host:* /bin/sh", on: ExactString(own)) == .allow)
    #expect(try action("allow host:\(other) /bin/sh", on: ExactString(own)) == .ask)
    #expect(try action("allow /bin/sh", on: ExactString(own)) == .ask)
    #expect(try action("deny host:\(other) /bin/sh", on: ExactString(own)) == .allow)
    #expect(try action("deny host:\(other) *\nallow *", on: ExactString(own)) == .allow)
    #expect(try action("deny /bin/sh", on: ExactString(own)) == .deny)
    #expect(try action("deny host:\(other) /bin/sh", on: nil) == .deny)
    #expect(try action("allow host:\(own) *", on: nil) == .ask)
  }
}
