import Model
import Platform
import SecretMemory
import Store

/// The request to the helper: lines of a name and a value, and an empty one.
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
  /// Of `keyhole run` what it starts with the secrets.
  var started: String?
  var parents = ""
  var operation = AccessOperation.read
  var changes: [String] = []
  var removesProtection = false
  /// Whether the person may answer for what else the process opens.
  var offersProcess = false
  /// The leader of the session that the person may answer for, for the dialog; nil: they may not.
  var session: String?
  /// The rule that the person may have written; nil: none.
  var rule: OfferedRule?
  /// The question is one of `keyhole approve`.
  var isApproval = false
  /// How long that approval holds.
  var approvedScope = Answer.Scope.items
  var process: Int32 = 0
  var terminal: String?
  var demand: Demand?
  var password = Question.Password.none
  var failures = 0
  var timeout = 60
  var reuse = 0
  var vault = ""
  var state = ""

  init() {}

  init(_ question: Question, vault: String, state: String) {
    items = question.items
    (program, command) = (question.caller.programName, question.caller.commandLine)
    script = question.caller.script
    let words = question.caller.startedCommand
    started = words.isEmpty ? nil : words.joined(separator: " ")
    parents = question.caller.parents.prefix(Self.shownParents).joined(separator: " ← ")
    operation = question.operation
    changes = question.change?.lines ?? []
    removesProtection = question.change?.removesProtection ?? false
    offersProcess = question.offersProcess
    session = question.offersSession ? question.caller.session.map(Self.name) : nil
    (rule, isApproval) = (question.offeredRule, question.approver != nil)
    approvedScope = question.approvedScope
    let asked = question.approver ?? question.caller
    (process, terminal) = (asked.process?.number ?? 0, asked.terminal)
    (demand, password) = (question.demand, question.password)
    (failures, timeout, reuse) = (question.failures, question.timeout, question.reuse)
    (self.vault, self.state) = (vault, state)
  }

  /// `/usr/bin/bash (17)`
  private static func name(of leader: Caller.Identity.Process) -> String {
    let files = ProcessFiles(leader.number)
    return "\(files.executablePath ?? files.status?.name ?? "a process") (\(leader.number))"
  }

  /// From standard input; nil: it is no request.
  init?(reading descriptor: Int32) {
    while true {
      guard let bytes = try? SecretInput.readLine(descriptor: descriptor, limit: 64 * 1024) else {
        return nil
      }
      let line = bytes.span.text
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
    lines += session.map { [("session", $0)] } ?? []
    lines += started.map { [("starts", String($0.prefix(2000)))] } ?? []
    if let rule {
      lines += [("rule", rule.program.string)] + (rule.demand.map { [("rule-demand", $0.text)] } ?? [])
    }
    lines += isApproval ? [("asks-for", approvedScope.word)] : []
    lines += terminal.map { [("terminal", $0)] } ?? []
    lines += demand.map { [("demand", $0.text)] } ?? []
    lines += password.word.map { [("password", $0)] } ?? []
    // A line feed in a name must not begin another line.
    let text = lines.map { "\($0) \($1.escapedForTerminal)\n" }.joined() + "\n"
    // A pipe takes this much at once, or the helper reads.
    try? Files.write(Array(text.utf8).span, to: descriptor)
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
