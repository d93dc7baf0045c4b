import Model
import Platform

/// Answers that hold for later requests of the same operation: for some seconds for the process that asked, for the same
/// program in the same session, or once for the next process that does the same.
struct AccessGrants {
  struct Grant {
    /// The processes that an answer holds for.
    enum Holder: Hashable {
      case process(Caller.Identity.Process, until: UInt64)
      /// Every process that executes the same program in the session of this leader, as long as that runs.
      case session(leader: Caller.Identity.Process)
      /// The next process that is shown to a person as the one that asked was, once.
      case next(Caller.Identity.Shown, until: UInt64)
    }

    /// Of those of this list that hold once.
    var number: UInt64 = 0
    /// nil: every item with the same demand and no password, as the person chose.
    var item: ItemID?
    var operation: AccessOperation
    var secrets: ItemSecrets
    var holder: Holder
    var executable: FileID?
    /// The SHA-256 of the executable; nil: it can't be changed by the user, or the process itself is the holder.
    var digest: String?
    var script: String?
    /// Of `keyhole run` what it starts, of a credential helper what has started it: an answer for one program is none for another.
    var startedCommand: Caller.Identity.StartedCommand?
    var helped: Caller.Identity.HelpedProgram?
    /// The SHA-256 of that program's file; nil: the user can't change it, or there is none, or the process itself is the holder.
    var servedDigest: String?
    var demand: Demand?
    var password: ItemPassword?
  }

  private var grants: [Grant] = []
  private var lastNumber: UInt64 = 0

  /// Keeps a person's answer for the items of a question; not one to a change of protection.
  mutating func add(_ subject: PermissionRequest.Subject, _ answer: Answer, until end: UInt64) {
    guard case .approved(let password, let scope) = answer, subject.operation != .change,
      let process = subject.caller.process
    else { return }
    grants.append(
      Grant(
        item: scope == .process && password == nil ? nil : subject.item, operation: subject.operation,
        secrets: subject.secrets, holder: .process(process, until: end),
        executable: subject.caller.executable?.file, script: subject.caller.script,
        startedCommand: subject.caller.startedCommand, helped: subject.caller.helped, demand: subject.demand,
        password: password))
  }

  /// Keeps a person's answer for the program of a question in its session.
  mutating func addForSession(_ subject: PermissionRequest.Subject, digest: String?) {
    guard subject.offersSession, let leader = subject.caller.session else { return }
    let caller = subject.caller
    grants.append(
      Grant(
        item: subject.item, operation: subject.operation, secrets: subject.secrets,
        holder: .session(leader: leader), executable: subject.caller.executable?.file, digest: digest,
        script: caller.script, startedCommand: caller.startedCommand, helped: caller.helped,
        servedDigest: caller.digestOfServed(), demand: subject.demand))
  }

  /// Keeps a person's answer for the next process that does what one did that has ended. `digest`: of its executable.
  mutating func addForNext(_ subject: PermissionRequest.Subject, digest: String?, until end: UInt64) {
    guard subject.offersNext else { return }
    let caller = subject.caller
    lastNumber += 1
    grants.append(
      Grant(
        number: lastNumber, item: subject.item, operation: subject.operation, secrets: subject.secrets,
        holder: .next(caller.shown, until: end), executable: caller.executable?.file, digest: digest,
        script: caller.script, startedCommand: caller.startedCommand, helped: caller.helped,
        servedDigest: caller.digestOfServed(), demand: subject.demand))
  }

  /// Takes an answer that holds once. - Returns: false: it was taken before.
  mutating func use(_ grant: Grant) -> Bool {
    guard grant.isForNext else { return true }
    guard let index = grants.firstIndex(where: { $0.number == grant.number }) else { return false }
    grants.remove(at: index)
    return true
  }

  /// The answer that covers a request now.
  func grant(for subject: PermissionRequest.Subject) -> Grant? {
    guard subject.password != .new else { return nil }
    return grants.first { $0.covers(subject) }
  }

  /// Whether the same process was given another item in the same way: then it may ask for many.
  func hasOther(for subject: PermissionRequest.Subject) -> Bool {
    grants.contains {
      !$0.isForNext && $0.isOfCaller(subject.caller) && $0.operation.covers(subject.operation)
        && $0.demand == subject.demand
    }
  }

  mutating func removeAll() { grants = [] }

  /// Removes the answers that ended by this time, and those of sessions that have ended.
  mutating func removeAll(endingBy time: UInt64) {
    grants.removeAll { grant in
      switch grant.holder {
      case .process(_, let end), .next(_, let end): end <= time
      case .session(let leader): !leader.isRunning
      }
    }
  }

  mutating func removeAll(with password: ItemPassword) { grants.removeAll { $0.password === password } }
}

extension AccessGrants.Grant {
  fileprivate var isForNext: Bool { if case .next = holder { true } else { false } }

  fileprivate func isOfCaller(_ caller: Caller.Identity) -> Bool {
    guard executable == caller.executable?.file, script == caller.script,
      caller.serves(startedCommand, helped)
    else { return false }
    switch holder {
    case .process(let process, _): return process == caller.process
    case .session(let leader): return caller.isIdentified && leader == caller.session
    case .next(let shown, _): return shown.isShown(by: caller)
    }
  }

  fileprivate func covers(_ subject: PermissionRequest.Subject) -> Bool {
    guard isOfCaller(subject.caller), operation.covers(subject.operation), demand == subject.demand else {
      return false
    }
    guard let item else {
      // An answer about a code is none about a secret, nor about what the code is computed from.
      return subject.password == .none && (secrets != .code || subject.secrets == .code)
    }
    return item == subject.item && secrets.covers(subject.secrets)
  }
}

extension PermissionRequest.Subject {
  /// Whether a rule may be written in place of an answer: not for a code, as rules are for all secrets of an item, and not where
  /// `keyhole` serves another program, as the rule would be for `keyhole`, whatever it serves.
  var offersRule: Bool { hasKeptAnswer && secrets != .code && !caller.servesAnother }

  /// Whether an answer may hold for a later process that does the same: there is no password, and the process is known.
  var offersNext: Bool { hasKeptAnswer && caller.process != nil && caller.isServedKnown }

  /// Whether an answer may hold longer than for some seconds.
  private var hasKeptAnswer: Bool {
    password == .none && (operation == .read || operation == .write || operation == .readWrite)
  }

  /// Whether an answer for the rest of the session is possible: the program and its session are known, the session does not end
  /// with the process itself, and there is no password, which is not kept for so long.
  var offersSession: Bool {
    guard hasKeptAnswer, let leader = caller.session, leader.start > 0, leader != caller.process,
      caller.isServedKnown
    else {
      return false
    }
    return caller.ruleProgram != nil
  }
}
