import Model
import Platform

/// Answers that hold for some seconds, each for the process that asked and the operation that it asked for.
struct AccessGrants {
  struct Grant {
    /// nil: every item with the same demand and no password, as the person chose.
    var item: ItemID?
    var operation: AccessOperation
    var secrets: ItemSecrets
    var process: Caller.Identity.Process
    var executable: FileID?
    var script: String?
    var demand: Demand?
    var password: ItemPassword?
    var end: UInt64
  }

  private var grants: [Grant] = []

  /// Keeps a person's answer for the items of a question until `end`; not one to a change of protection.
  mutating func add(_ subject: PermissionRequest.Subject, _ answer: Answer, until end: UInt64) {
    guard case .approved(let password, let scope) = answer, subject.operation != .change,
      let process = subject.caller.process
    else { return }
    grants.append(
      Grant(
        item: scope == .process && password == nil ? nil : subject.item, operation: subject.operation,
        secrets: subject.secrets, process: process, executable: subject.caller.executable?.file,
        script: subject.caller.script,
        demand: subject.demand, password: password, end: end))
  }

  /// The answer that covers a request now.
  func grant(for subject: PermissionRequest.Subject) -> Grant? {
    guard subject.password != .new else { return nil }
    return grants.first { $0.covers(subject) }
  }

  /// Whether the same process was given another item in the same way: then it may ask for many.
  func hasOther(for subject: PermissionRequest.Subject) -> Bool {
    grants.contains {
      $0.isOfCaller(subject.caller) && $0.operation.covers(subject.operation) && $0.demand == subject.demand
    }
  }

  mutating func removeAll() { grants = [] }

  mutating func removeAll(endingBy time: UInt64) { grants.removeAll { $0.end <= time } }

  mutating func removeAll(with password: ItemPassword) { grants.removeAll { $0.password === password } }
}

extension AccessGrants.Grant {
  fileprivate func isOfCaller(_ caller: Caller.Identity) -> Bool {
    process == caller.process && executable == caller.executable?.file && script == caller.script
  }

  fileprivate func covers(_ subject: PermissionRequest.Subject) -> Bool {
    guard isOfCaller(subject.caller), operation.covers(subject.operation), demand == subject.demand else {
      return false
    }
    guard let item else { return subject.password == .none }
    return item == subject.item && secrets.isSuperset(of: subject.secrets)
  }
}
