import Model
import Platform

extension Item {
  /// The decision of the rules on a caller, the item's own first.
  ///
  /// Where none fits, a person is asked if the item has flags, or if any of the rules allows something: a list of allowed
  /// programs keeps the others out, whichever hosts it is for. A list that only denies or asks leaves the others as they would be
  /// without it.
  ///
  /// `host`: the number of this device in the keychain's cluster; nil: it is no cluster's.
  func action(
    for caller: Caller.Identity, on host: ExactString?, inherited: [ProgramRules.Rule]
  ) -> ProgramRules.Action {
    let rules = rules(inherited: inherited)
    return rules.action(for: caller, on: host)
      ?? (access.isEmpty && !rules.contains(where: \.isAllowing) ? .allow : .ask)
  }

  func rules(inherited: [ProgramRules.Rule]) -> [ProgramRules.Rule] {
    (programs.map(ProgramRules.rules) ?? []) + inherited
  }
}

extension ProgramRules.Rule {
  var isAllowing: Bool { action == .allow }

  /// The action of the rule for a caller on a host; nil: it does not match.
  ///
  /// A program is known by its file, whatever its path; of an interpreter also the script fits. An unidentified caller fits
  /// every rule for a path that does not let it in, as a question, since it may be that program.
  func action(for caller: Caller.Identity, on host: ExactString?) -> ProgramRules.Action? {
    guard let here = action(on: host) else { return nil }
    switch subject {
    case .every: return caller.isIdentified || here != .allow ? here : .ask
    case .unidentified: return caller.isIdentified ? nil : here
    case .program(let path, let digest):
      guard caller.isIdentified else { return action == .allow ? nil : .ask }
      return Self.fits(path.string, digest, caller) ? here : nil
    }
  }

  private static func fits(_ path: String, _ digest: String?, _ caller: Caller.Identity) -> Bool {
    let isCompared = caller.hasComparedPath && caller.executable?.path == path
    guard let file = isCompared ? caller.executable?.file : FileID(path) else { return false }
    if file == caller.executable?.file { return digest == nil || digest == caller.digestOfExecutable() }
    guard let script = caller.script, FileID(script) == file else { return false }
    return digest == nil || digest == Caller.Identity.digest(ofFile: script)
  }
}

extension [ProgramRules.Rule] {
  /// The action of the first rule that matches; nil: none does.
  func action(for caller: Caller.Identity, on host: ExactString?) -> ProgramRules.Action? {
    for rule in self {
      if let action = rule.action(for: caller, on: host) { return action }
    }
    return nil
  }
}

extension Caller.Identity {
  /// The path that a rule for this program has: that of the script, of an interpreter. nil: the program is unidentified, its
  /// file is no longer at the path, or it is an interpreter without a script, which may be any program.
  var ruleProgram: ExactString? {
    guard let executable, executable.hasPath else { return nil }
    if let script { return ExactString(script) }
    guard ScriptInterpreter(path: executable.path, file: executable.file) == nil else { return nil }
    return ExactString(executable.path)
  }
}
