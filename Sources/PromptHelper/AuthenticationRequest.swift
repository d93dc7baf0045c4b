import Model
import Platform
import SecretMemory
package import Store

/// The request to the helper: lines of a name and a value, and an empty one.
package struct AuthenticationRequest {
  /// So many items are named.
  private static let shown = 10
  /// The log has more.
  private static let shownParents = 4
  /// The longest path that a program may have shown, in characters.
  private static let longestPath = 300

  package var items: [String] = []
  package var others = 0
  package var program = ""
  package var command = ""
  package var script: String?
  /// Of `keyhole run` what it starts with the secrets.
  package var started: String?
  package var parents = ""
  package var operation = AccessOperation.read
  package var changes: [String] = []
  package var removesProtection = false
  /// Whether the person may answer for what else the process opens.
  package var offersProcess = false
  /// The leader of the session that the person may answer for, for the dialog; nil: they may not.
  package var session: String?
  /// The rule that the person may have written; nil: none.
  package var rule: OfferedRule?
  /// The question is one of `keyhole approve`.
  package var isApproval = false
  /// How long that approval holds.
  package var approvedScope = Answer.Scope.items
  /// Whether it holds for the next process, where the one that asked has ended.
  package var approvesNext = false
  package var process: Int32 = 0
  package var terminal: String?
  package var demand: Demand?
  package var password = Question.Password.none
  package var failures = 0
  package var timeout = 60
  package var reuse = 0
  package var vault = ""
  package var state = ""
  /// The record of this device in a store of a cluster, which the passphrase that is typed has to open; nil: the vault's passphrase counts.
  package var device: [UInt8]?
  /// Whether Keyhole asks; else another program does, which gets the passphrase itself. It is not sent.
  package private(set) var isOfKeyhole = true

  package init() {}

  package init(_ question: Question, vault: String, state: String) {
    items = question.items
    (program, command) = (question.caller.shownName, question.caller.commandLine)
    script = question.caller.script
    started = question.caller.startedCommand?.text
    parents = question.caller.parents.prefix(Self.shownParents).joined(separator: " ← ")
    operation = question.operation
    changes = question.change?.lines ?? []
    removesProtection = question.change?.removesProtection ?? false
    offersProcess = question.offersProcess
    session = question.offersSession ? question.caller.session.map(Self.name) : nil
    (rule, isApproval) = (question.offeredRule, question.approver != nil)
    (approvedScope, approvesNext) = (question.approvedScope, question.approvesNext)
    let asked = question.approver ?? question.caller
    (process, terminal) = (asked.process?.number ?? 0, asked.terminal)
    (demand, password) = (question.demand, question.password)
    (failures, timeout, reuse) = (question.failures, question.timeout, question.reuse)
    (self.vault, self.state) = (vault, state)
  }

  /// The request as a program may make it that is not Keyhole: it asks for the passphrase of a vault, and all that the
  /// dialog shows of the program is what `caller` was found to be. nil: it asks for something else.
  package func ofProgram(_ caller: Caller.Identity) -> AuthenticationRequest? {
    guard password == .vault, caller.process != nil, let item = items.first else { return nil }
    var question = Question(
      forPassphraseToOpen: String(item.prefix(Self.longestPath)), by: caller,
      timeout: min(max(timeout, 10), 3600))
    question.failures = min(max(failures, 0), UnlockController.attempts - 1)
    var request = AuthenticationRequest(question, vault: String(vault.prefix(Self.longestPath)), state: "")
    request.isOfKeyhole = false
    return request
  }

  /// `/usr/bin/bash (17)`
  private static func name(of leader: Caller.Identity.Process) -> String {
    let files = ProcessFiles(leader.number)
    return "\(files.executablePath ?? files.status?.name ?? "a process") (\(leader.number))"
  }

  /// From standard input; nil: it is no request.
  package init?(reading descriptor: Int32) {
    while true {
      guard let bytes = try? SecretReader.readLine(descriptor: descriptor, limit: 64 * 1024) else {
        return nil
      }
      let line = bytes.span.text
      guard !line.isEmpty else { break }
      let parts = line.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      guard parts.count == 2, take(parts[0], parts[1]) else { return nil }
    }
    guard !items.isEmpty else { return nil }
  }

  /// Writes the request.
  package func send(to descriptor: Int32) {
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
    lines += session.map { [("session", $0)] } ?? []
    lines += started.map { [("starts", String($0.prefix(2000)))] } ?? []
    if let rule {
      lines += [("rule", rule.program.string)] + (rule.demand.map { [("rule-demand", $0.text)] } ?? [])
    }
    lines += isApproval ? [("asks-for", approvedScope.word)] : []
    lines += approvesNext ? [("approves", "next")] : []
    lines += terminal.map { [("terminal", $0)] } ?? []
    lines += demand.map { [("demand", $0.text)] } ?? []
    lines += device.map { [("device", $0.hexadecimal)] } ?? []
    lines += password.word.map { [("password", $0)] } ?? []
    // A line feed in a name must not begin another line.
    let text = lines.map { "\($0) \($1.escapedForTerminal)\n" }.joined() + "\n"
    // A pipe takes this much at once, or the helper reads. One that has ended already must not end this process by SIGPIPE.
    Signals.withoutBrokenPipe { try? Files.write(Array(text.utf8).span, to: descriptor) }
  }

  private mutating func take(_ name: String, _ value: String) -> Bool {
    switch name {
    case "item": items.append(value)
    case "program": program = value
    case "command": command = value
    case "script": script = value
    case "starts": started = value
    case "operation": operation = AccessOperation(rawValue: value) ?? .change
    case "change": changes.append(value)
    case "removes": removesProtection = true
    case "offers": offersProcess = true
    case "session": session = value
    case "rule": rule = OfferedRule(program: ExactString(value), demand: nil)
    case "rule-demand":
      // One that can't be read must not be none.
      guard let demand = Demand(text: value) else { return false }
      rule?.demand = demand
    case "asks-for":
      guard let scope = Answer.Scope(word: value) else { return false }
      (isApproval, approvedScope) = (true, scope)
    case "approves": approvesNext = true
    case "parents": parents = value
    case "process": process = Int32(value) ?? 0
    case "terminal": terminal = value
    case "demand": demand = Demand(text: value)
    case "password": password = Question.Password(word: value)
    case "failures": failures = Int(value) ?? 0
    case "timeout": timeout = Int(value) ?? 60
    case "reuse": reuse = Int(value) ?? 0
    case "others": others = Int(value) ?? 0
    case "vault": vault = value
    case "state": state = value
    case "device":
      // One that can't be read must not be none.
      guard let record = [UInt8](hexadecimal: value) else { return false }
      device = record
    default: return false
    }
    return true
  }
}

extension Question.Password {
  /// nil: the dialog asks for none.
  fileprivate var word: String? {
    switch self {
    case .none: nil
    case .present: "present"
    case .new: "new"
    case .vault: "vault"
    }
  }

  fileprivate init(word: String) {
    switch word {
    case "new": self = .new
    case "vault": self = .vault
    default: self = .present
    }
  }
}

extension Answer.Scope {
  fileprivate var word: String {
    switch self {
    case .items: "once"
    case .process: "process"
    case .session: "session"
    case .always: "always"
    }
  }

  fileprivate init?(word: String) {
    switch word {
    case "once": self = .items
    case "process": self = .process
    case "session": self = .session
    case "always": self = .always
    default: return nil
    }
  }
}
