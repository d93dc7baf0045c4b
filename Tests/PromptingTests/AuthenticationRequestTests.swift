import Glibc
import Model
import Platform
import Store
import Testing

@testable import PromptHelper

/// The request that the process of a mount writes to the process that asks.
@Suite struct AuthenticationRequestTests {
  private static func readBack(_ request: AuthenticationRequest) -> AuthenticationRequest? {
    var pipe = Pipe()
    request.send(to: pipe.writeEnd)
    pipe.closeWriteEnd()
    return AuthenticationRequest(reading: pipe.readEnd)
  }

  private static func read(_ text: String) -> AuthenticationRequest? {
    let pipe = Pipe(holding: text.utf8)
    return AuthenticationRequest(reading: pipe.readEnd)
  }

  @Test func everyPartIsReadBack() throws {
    var request = AuthenticationRequest()
    request.items = ["keychain/generic/s/a", "keychain/generic/s/b c"]
    request.program = "/usr/bin/cat"
    request.command = "cat value"
    request.script = "/home/u/script"
    request.started = "psql -h db"
    request.parents = "bash (1) ← sshd (2)"
    request.operation = .readWrite
    request.changes = ["access flags: none → userPresence"]
    request.removesProtection = true
    request.offersProcess = true
    (request.session, request.isApproval) = ("/usr/bin/bash (17)", true)
    request.approvedScope = .always
    request.rule = OfferedRule(program: "/opt/a b", demand: .any([.passcode, .biometry]))
    request.process = 77
    request.terminal = "/dev/pts/1"
    request.demand = .any([.passcode, .biometry])
    request.password = .new
    request.failures = 2
    request.timeout = 30
    request.reuse = 5
    request.vault = "/home/u/vault"
    request.state = "/home/u/state"
    let read = try #require(Self.readBack(request))
    #expect(read.items == request.items && read.others == 0)
    #expect(read.program == request.program && read.command == request.command)
    #expect(read.started == request.started)
    #expect(read.script == request.script && read.parents == request.parents)
    #expect(read.operation == .readWrite && read.changes == request.changes)
    #expect(read.removesProtection && read.offersProcess && read.process == 77)
    #expect(read.session == "/usr/bin/bash (17)" && read.isApproval)
    #expect(read.approvedScope == .always)
    #expect(read.rule?.program == "/opt/a b" && read.rule?.demand == .any([.passcode, .biometry]))
    #expect(read.terminal == request.terminal && read.demand == request.demand && read.password == .new)
    #expect(read.failures == 2 && read.timeout == 30 && read.reuse == 5)
    #expect(read.vault == request.vault && read.state == request.state)
  }

  @Test func tenItemsAreNamedAndTheOthersCounted() throws {
    var request = AuthenticationRequest()
    request.items = (0..<13).map { "keychain/generic/s/\($0)" }
    let read = try #require(Self.readBack(request))
    #expect(read.items.count == 10 && read.others == 3)
  }

  /// A program may have any name, and it must not answer for the question's other lines.
  @Test func lineFeedInANameBeginsNoOtherLine() throws {
    var request = AuthenticationRequest()
    request.items = ["keychain/generic/s/a\nreuse 9999"]
    request.command = "x\n\nitem other"
    let read = try #require(Self.readBack(request))
    #expect(read.items == ["keychain/generic/s/a\\u{a}reuse 9999"] && read.reuse == 0)
    #expect(read.command == "x\\u{a}\\u{a}item other")
  }

  @Test(arguments: ["", "\n", "program x\n\n", "item x\nnonsense y\n\n", "item\n\n", "item a\nitem"])
  func otherTextIsNoRequest(text: String) {
    #expect(Self.read(text) == nil)
  }

  /// Only the path and the vault are what the program says.
  @Test func anotherProgramMayAskForAPassphraseOnly() throws {
    var request = AuthenticationRequest()
    request.items = [String(repeating: "a", count: 1000), "b"]
    (request.program, request.command, request.parents) = ("/usr/bin/keyhole", "keyhole", "bash (1)")
    (request.process, request.terminal, request.isApproval) = (1, "/dev/pts/1", true)
    (request.timeout, request.failures, request.vault) = (99999, 7, "/home/u/vault")
    request.changes = ["access flags: none → userPresence"]
    var caller = Caller.Identity(
      process: .init(number: 7, start: 1), user: 1,
      executable: .init(path: "/opt/program", file: FileID(device: 1, inode: 2)))
    caller.terminal = "/dev/pts/9"
    #expect(request.ofProgram(caller) == nil)
    request.password = .vault
    let own = try #require(request.ofProgram(caller))
    #expect(own.program == "/opt/program" && own.command.isEmpty && own.parents.isEmpty)
    #expect(own.process == 7 && own.terminal == "/dev/pts/9" && !own.isApproval && !own.isOfKeyhole)
    #expect(own.items == [String(repeating: "a", count: 300)] && own.changes.isEmpty && own.others == 0)
    #expect(own.timeout == 3600 && own.failures == 2 && own.vault == "/home/u/vault" && own.rule == nil)
    caller.process = nil
    #expect(request.ofProgram(caller) == nil)
  }

  /// SIGPIPE would end a program that uses the wrappers.
  @Test func anEndedHelperDoesNotEndTheProcess() {
    var request = AuthenticationRequest()
    request.items = ["a"]
    var ends: [Int32] = [-1, -1]
    _ = unsafe pipe(&ends)
    close(ends[0])
    request.send(to: ends[1])
    close(ends[1])
    var pending = sigset_t()
    unsafe sigpending(&pending)
    #expect(unsafe sigismember(&pending, SIGPIPE) == 0)
  }

  @Test func whatHasNoNumberHasItsDefault() throws {
    let request = try #require(Self.read("item a\ntimeout x\nreuse 99999999999999999999\nprocess 1.5\n\n"))
    #expect(request.timeout == 60 && request.reuse == 0 && request.process == 0)
  }
}
