import Glibc
import Model
import Platform
import StoreConformance
import Synchronization
import Testing

@testable import Store

/// Answers that hold longer than once, rules that a person has written by an answer, and programs that are not asked about.
@Suite(.timeLimit(.minutes(1))) struct ApprovalTests: AccessTesting {
  let engine = MemoryKeychain()
  let time = TestTime()

  private func keeping(_ person: any Authenticator) -> KeychainStore {
    store(person) { $0.keepsSessions = true }
  }

  // MARK: - For the session

  @Test func answerForTheSessionHoldsForTheProgramThere() throws {
    let (a, b) = (try add("a", [], programs: "ask *"), try add("b", [], programs: "ask *"))
    let person = TestPerson([.approved(nil, scope: .session), .approved(nil)])
    let (store, session) = (keeping(person), try ownSession())
    #expect(try ask(store, a, program(1, session: session)) == nil)
    time.seconds.add(3600, ordering: .relaxed)
    #expect(try ask(store, a, program(2, session: session)) == nil)
    #expect(person.count == 1)
    // Another item, another operation, another program, another session, another script.
    #expect(try ask(store, b, program(2, session: session)) == nil && person.count == 2)
    #expect(try ask(store, a, program(3, session: session), to: .write) == nil && person.count == 3)
    #expect(
      try ask(store, a, program(4, session: session, path: "/usr/bin/head")) == nil && person.count == 4)
    #expect(try ask(store, a, program(5, session: .init(number: 7, start: 7))) == nil && person.count == 5)
    var script = try program(6, session: session)
    script.script = "/opt/a.py"
    #expect(try ask(store, a, script) == nil && person.count == 6)
    #expect(person.questions.withLock { $0.map(\.offersSession) }.allSatisfy { $0 })
  }

  @Test func answerForTheSessionEndsWithTheLock() throws {
    let a = try add("a", [], programs: "ask *")
    let person = TestPerson([.approved(nil, scope: .session)])
    let (store, session) = (keeping(person), try ownSession())
    #expect(try ask(store, a, program(1, session: session)) == nil)
    try store.lock()
    try store.unlock(KeychainSamples.secret(""))
    #expect(try ask(store, a, program(2, session: session)) == nil && person.count == 2)
  }

  @Test func answerForTheSessionEndsWithItsLeader() throws {
    let a = try add("a", [], programs: "ask *")
    let person = TestPerson([.approved(nil, scope: .session)])
    let store = keeping(person)
    let leader = try Child(["/bin/sleep", "100"], input: .piped)
    let session = try #require(Caller.Identity.Process(running: leader.process))
    #expect(try ask(store, a, program(1, session: session)) == nil)
    #expect(try ask(store, a, program(2, session: session)) == nil && person.count == 1)
    leader.end()
    time.seconds.add(60, ordering: .relaxed)
    #expect(try ask(store, a, program(3, session: session)) == nil && person.count == 2)
  }

  /// The user could write another program into the file.
  @Test func answerForTheSessionIsForTheProgramAsItWas() throws {
    let folder = TemporaryFolder.folder()
    defer { _ = try? Files.remove(folder + "/tool") }
    let path = folder + "/tool"
    try Descriptor(path, [.writing, .create]).write(Array("one".utf8).span, at: 0)
    #expect(unsafe chmod(path, 0o666) == 0)
    let a = try add("a", [], programs: "ask *")
    let person = TestPerson([.approved(nil, scope: .session)])
    let (store, session) = (keeping(person), try ownSession())
    #expect(try ask(store, a, program(1, session: session, path: path)) == nil)
    // Its executable can't be read any more as the one that was approved.
    #expect(try ask(store, a, program(2, session: session, path: path)) == nil && person.count == 2)
  }

  @Test func sessionIsNotOfferedWithoutOne() throws {
    let a = try add("a", [], programs: "ask *")
    let person = TestPerson([.approved(nil, scope: .session)])
    let store = keeping(person)
    let interpreter = try program(3, session: ownSession(), path: Files.realPath("/usr/bin/perl"))
    for caller in [
      try program(1, session: nil), try program(2, session: .init(number: 9, start: 0)), interpreter,
    ] {
      #expect(try ask(store, a, caller) == nil)
    }
    #expect(person.questions.withLock { $0.map(\.offersSession) } == [false, false, false])
    #expect(person.questions.withLock { $0.map { $0.offeredRule != nil } } == [true, true, false])
    // A command that has its mount decide keeps nothing.
    let relaying = self.store(person)
    #expect(try ask(relaying, a, program(4, session: ownSession())) == nil)
    #expect(person.questions.withLock { $0.last?.offersSession } == false)
  }

  // MARK: - By a rule

  @Test func alwaysWritesARule() throws {
    let a = try add("a", [], programs: "allow /opt/other\nask *")
    let person = TestPerson([.approved(nil, scope: .always)])
    let store = store(person)
    #expect(try ask(store, a, program(1, session: nil)) == nil)
    #expect(try store.read { $0[a]?.programs } == "allow /usr/bin/cat\nallow /opt/other\nask *")
    #expect(try ask(store, a, program(2, session: nil)) == nil && person.count == 1)
  }

  @Test func neverWritesARule() throws {
    let a = try add("a", [], programs: "allow /usr/bin/cat\nask *")
    try store(TestPerson()).update([a], Permit(item: a, for: .change)) { $0.programs = "ask *" }
    let person = TestPerson([.never])
    let store = store(person)
    #expect(try ask(store, a, program(1, session: nil))?.errno == .EACCES)
    #expect(try store.read { $0[a]?.programs } == "deny /usr/bin/cat\nask *")
    #expect(errno { _ = try ask(store, a, program(2, session: nil)) } == EACCES)
    #expect(person.count == 1)
  }

  /// To change the rules of an item without flags takes the passphrase; the flags of others demand it anyway.
  @Test func ruleDemandsWhatAChangeDemands() throws {
    let (free, flagged) = (try add("free", [], programs: "ask *"), try add("flagged"))
    let person = TestPerson()
    let store = store(person)
    #expect(try ask(store, free, program(1, session: nil)) == nil)
    #expect(try ask(store, flagged, program(1, session: nil)) == nil)
    let demands = person.questions.withLock { $0.map { $0.offeredRule?.demand } }
    let change = store.consentToChange(sealed: false)
    #expect(demands == [change == .consent ? nil : change, nil])
  }

  // MARK: - Browsers of files

  @Test func browserCausesNoQuestion() throws {
    let (guarded, free) = (try add("guarded", [], programs: "ask *"), try add("free", []))
    let allowed = try add("allowed", [], programs: "allow /usr/bin/cat\nask *")
    let person = TestPerson()
    let store = store(person) { $0.browsers = BrowserList(["/usr/bin/cat"]) }
    let browser = try program(1, session: nil)
    #expect(errno { _ = try ask(store, guarded, browser) } == EACCES)
    #expect(try ask(store, free, browser) == nil && ask(store, allowed, browser) == nil)
    #expect(person.count == 0)
    #expect(
      try ask(store, guarded, program(2, session: nil, path: "/usr/bin/head")) == nil && person.count == 1)
  }

  @Test func browserIsAProgramOfRoot() throws {
    #expect(BrowserList(["/usr/bin/c*"]).paths.count == 1)
    // A person types these commands.
    #expect(!BrowserList.usual.paths.contains { $0.hasSuffix("/gio") || $0.hasSuffix("/cat") })
    #expect(try BrowserList(["/usr/*/cat"]).contains(program(1, session: nil)))
    #expect(try !BrowserList(["/*/cat"]).contains(program(1, session: nil)))
    #expect(
      BrowserList(reading: "# a\n/usr/bin/a b\n\nrelative\n/usr/bin/c\r\n").paths == [
        "/usr/bin/a b", "/usr/bin/c",
      ])
  }
}

private enum TemporaryFolder {
  static func folder() -> String { environment("TMPDIR") ?? "/tmp" }
}
