import Glibc
import KeychainSelection
import Model
import SecretMemory
import Store

/// Has a person asked by a process of its own: dialogs, PAM and fingerprint readers run other people's code, and
/// this one holds the keys.
struct HelperAuthenticator: Authenticator {
  let places: StoragePaths

  func ask(_ question: Question, _ withdrawal: Withdrawal) -> Answer {
    guard let question = question.settled() else { return .revoked }
    let words = ["/proc/self/exe", "authenticate"]
    guard let helper = try? Child(words, input: .piped) else {
      return .impossible("no dialog can be started")
    }
    // Not SIGKILL: it first takes its dialog off the terminal.
    withdrawal.whenWithdrawn { [process = helper.process] in kill(process, SIGTERM) }
    defer {
      withdrawal.whenWithdrawn(nil)
      helper.terminate()
    }
    let request = AuthenticationRequest(question, vault: places.vault, state: places.state)
    request.send(to: helper.input)
    guard helper.waitForOutput(seconds: question.timeout) else { return .timedOut }
    // Its input stays open until it has answered: the end of it means that no request waits any more.
    return AuthenticationReply.read(helper.output)
  }
}

extension Question {
  /// The part that is still to be asked of a person; nil: other fingers are enrolled than are demanded.
  fileprivate func settled() -> Question? {
    guard let demand else { return self }
    guard let left = demand.settled(EnrolledSet.digest) else { return nil }
    var question = self
    question.demand = left
    return question
  }
}

/// A program of the user's decides (`auth-command=`): for tests, and for machines without a person before them.
///
/// Its arguments are the item's path and the asking program's, then the paths of other items that are asked for
/// together. `KEYHOLE_OPERATION` in its environment is `read`, `write`, `read-write` or `change`. Exit code 0 approves; 10
/// approves also what the same process opens in the same way for as long as answers hold. For an item with an application
/// password, the first line it prints is that.
struct CommandAuthenticator: Authenticator {
  /// The exit code for an answer that holds for more than the items of the question.
  private static let approvesMore: Int32 = 10

  let program: String

  func ask(_ question: Question, _ withdrawal: Withdrawal) -> Answer {
    guard question.settled() != nil else { return .revoked }
    let words =
      ["/usr/bin/env", "KEYHOLE_OPERATION=\(question.operation.rawValue)", program, question.items[0]]
      + [question.caller.programName] + question.items.dropFirst()
    guard let command = try? Child(words, input: .piped) else {
      return .impossible("\(program) can't be started")
    }
    withdrawal.whenWithdrawn { [process = command.process] in kill(-process, SIGKILL) }
    defer {
      withdrawal.whenWithdrawn(nil)
      command.end()
    }
    command.closeInput()
    guard command.waitForEnd(seconds: question.timeout) else { return .timedOut }
    let status = command.wait()
    guard status == 0 || status == Self.approvesMore else { return .refused }
    guard question.password != .none else {
      return .approved(nil, scope: status == Self.approvesMore ? .process : .items)
    }
    guard let line = try? SecretInput.readLine(descriptor: command.output), !line.isEmpty else {
      return .impossible("\(program) printed no password")
    }
    return .approved(ItemPassword(line))
  }
}

/// What the helper is asked: lines of a name and a value, and an empty one.
struct AuthenticationRequest {
  /// So many items are named.
  private static let shown = 10
  /// The log has more.
  private static let shownParents = 4

  var items: [String] = []
  var others = 0
  var program = ""
  var command = ""
  var script: String?
  var parents = ""
  var operation = AccessOperation.read
  var changes: [String] = []
  var removesProtection = false
  /// Whether the person may answer for what else the process opens.
  var offersProcess = false
  var process: Int32 = 0
  var terminal: String?
  var demand: Demand?
  var password = Question.Password.none
  var failures = 0
  var timeout = 60
  var reuse = 0
  var vault = ""
  var state = ""

  init(_ question: Question, vault: String, state: String) {
    items = question.items
    (program, command) = (question.caller.programName, question.caller.commandLine)
    script = question.caller.script
    parents = question.caller.parents.prefix(Self.shownParents).joined(separator: " ← ")
    operation = question.operation
    changes = question.change?.lines ?? []
    removesProtection = question.change?.removesProtection ?? false
    offersProcess = question.offersProcess
    process = question.caller.process?.number ?? 0
    (terminal, demand, password) = (question.caller.terminal, question.demand, question.password)
    (failures, timeout, reuse) = (question.failures, question.timeout, question.reuse)
    (self.vault, self.state) = (vault, state)
  }

  /// From standard input; nil: it is no request.
  init?(reading descriptor: Int32) {
    while true {
      guard let bytes = try? SecretInput.readLine(descriptor: descriptor, limit: 64 * 1024) else {
        return nil
      }
      let line = unsafe bytes.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
      guard !line.isEmpty else { break }
      let parts = line.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      guard parts.count == 2, take(parts[0], parts[1]) else { return nil }
    }
    guard !items.isEmpty else { return nil }
  }

  func send(to descriptor: Int32) {
    // A dialog shows a few, and how many there are.
    var lines =
      items.prefix(Self.shown).map { ("item", $0) } + [("others", "\(max(0, items.count - Self.shown))")]
    lines += [("program", program), ("command", String(command.prefix(2000))), ("parents", parents)]
    lines += [
      ("timeout", "\(timeout)"), ("reuse", "\(reuse)"), ("failures", "\(failures)"), ("vault", vault),
      ("state", state),
    ]
    lines.append(("process", "\(process)"))
    lines.append(("operation", operation.rawValue))
    lines += changes.map { ("change", $0) } + (removesProtection ? [("removes", "protection")] : [])
    lines += (offersProcess ? [("offers", "process")] : []) + (script.map { [("script", $0)] } ?? [])
    lines += terminal.map { [("terminal", $0)] } ?? []
    lines += demand.map { [("demand", $0.text)] } ?? []
    lines += password == .none ? [] : [("password", password == .new ? "new" : "present")]
    // A line feed in a name must not begin another line.
    let text = lines.map { "\($0) \($1.escapedForTerminal)\n" }.joined() + "\n"
    // SAFETY: the buffer says how long it is. A pipe takes this much at once, or the helper reads.
    _ = unsafe Array(text.utf8).withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
  }

  private mutating func take(_ name: String, _ value: String) -> Bool {
    switch name {
    case "item": items.append(value)
    case "program": program = value
    case "command": command = value
    case "script": script = value
    case "operation": operation = AccessOperation(rawValue: value) ?? .change
    case "change": changes.append(value)
    case "removes": removesProtection = true
    case "offers": offersProcess = true
    case "parents": parents = value
    case "process": process = Int32(value) ?? 0
    case "terminal": terminal = value
    case "demand": demand = Demand(text: value)
    case "password": password = value == "new" ? .new : .present
    case "failures": failures = Int(value) ?? 0
    case "timeout": timeout = Int(value) ?? 60
    case "reuse": reuse = Int(value) ?? 0
    case "others": others = Int(value) ?? 0
    case "vault": vault = value
    case "state": state = value
    default: return false
    }
    return true
  }
}

extension Demand {
  /// Prefix notation: `any passcode biometry .`
  var text: String {
    switch self {
    case .consent: "consent"
    case .biometry: "biometry"
    case .biometryOfSet(let set): "biometry-of \(set)"
    case .passcode: "passcode"
    case .any(let demands): "any " + demands.map(\.text).joined(separator: " ") + " ."
    case .all(let demands): "all " + demands.map(\.text).joined(separator: " ") + " ."
    }
  }

  init?(text: String) {
    var words = text.split(separator: " ")[...]
    guard let demand = Self.parse(&words), words.isEmpty else { return nil }
    self = demand
  }

  private static func parse(_ words: inout ArraySlice<Substring>) -> Demand? {
    switch words.popFirst() {
    case "consent": return .consent
    case "biometry": return .biometry
    case "biometry-of": return words.popFirst().map { .biometryOfSet(String($0)) }
    case "passcode": return .passcode
    case "any": return parseList(&words).map(Demand.any)
    case "all": return parseList(&words).map(Demand.all)
    default: return nil
    }
  }

  private static func parseList(_ words: inout ArraySlice<Substring>) -> [Demand]? {
    var demands: [Demand] = []
    while words.first != "." {
      guard let demand = parse(&words) else { return nil }
      demands.append(demand)
    }
    words.removeFirst()
    return demands
  }
}

/// The helper's answer: a word, and what belongs to it.
enum AuthenticationReply {
  static func read(_ descriptor: Int32) -> Answer {
    guard let bytes = try? SecretInput.readLine(descriptor: descriptor) else { return .refused }
    let line = unsafe bytes.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    switch line {
    case "approved": return .approved(nil)
    case "approved-process": return .approved(nil, scope: .process)
    case "password":
      guard let password = try? SecretInput.readLine(descriptor: descriptor) else { return .refused }
      return .approved(ItemPassword(password))
    case "refused": return .refused
    case "rejected": return .rejected
    case "revoked": return .revoked
    case "late": return .timedOut
    default: return .impossible(line.isEmpty ? "the dialog has failed" : line)
    }
  }

  static func send(_ answer: Answer) {
    switch answer {
    case .approved(let password?, _):
      StandardOutput.print("password")
      unsafe password.bytes.withUnsafeBytes { unsafe StandardOutput.write($0) }
      StandardOutput.print("")
    case .approved(nil, .process): StandardOutput.print("approved-process")
    case .approved: StandardOutput.print("approved")
    case .refused: StandardOutput.print("refused")
    case .rejected: StandardOutput.print("rejected")
    case .revoked: StandardOutput.print("revoked")
    case .timedOut: StandardOutput.print("late")
    case .impossible(let reason): StandardOutput.print(reason)
    }
  }
}
