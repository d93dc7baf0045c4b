package import Model
import Platform
import Store
import Tree

/// The rules for programs that hold at a path, in the order in which they are tried.
package struct EffectiveRules {
  /// A rule, and the path where it is written.
  package private(set) var lines: [(place: String, rule: String)] = []
  /// Whether the item has access flags.
  var hasFlags = false

  /// The decision on programs that no rule names.
  package var remainder: String {
    let rules = lines.compactMap { ProgramRules(ExactString($0.rule))?.rules.first }
    if rules.contains(where: { $0.subject == .every }) { return "no other programs" }
    return hasFlags || rules.contains { $0.action == .allow } ? "ask" : "allow"
  }

  mutating func add(_ text: String, at place: String) {
    lines += text.split(separator: "\n").map { (place, String($0)) }
  }
}

extension TreeSession {
  private static let programs = "user.keyhole.programs"
  private static let access = "user.keyhole.access"

  /// - Throws: `Failure` where the path is not one of the keychain.
  package func effectiveRules(at path: TreePath) throws -> EffectiveRules {
    var (rules, components) = (EffectiveRules(), path.components[...])
    let node = try node(at: path)
    if components.count == 5 { components = components.dropLast() }
    guard components.first == "keychain" else {
      throw Failure(path.string, "only the keychain has rules for programs")
    }
    rules.hasFlags = try value(Self.access, of: node, path) != nil
    while !components.isEmpty {
      let place = TreePath(components.joined(separator: "/"))
      if let text = try value(Self.programs, of: self.node(at: place), place) {
        rules.add(text, at: place.string)
      }
      components = components.dropLast()
    }
    return rules
  }

  /// Writes a rule for a program before the other rules at a path; of a guarded item a person is asked first.
  ///
  /// - Parameters:
  ///   - action: the action of the rule.
  ///   - program: an absolute path.
  ///   - path: an item, a service or server, or `keychain`.
  /// - Throws: `Failure` that names the path.
  package func addRule(
    _ action: ProgramRules.Action, for program: ExactString, at path: TreePath
  ) throws {
    let node = try node(at: path)
    let present = try value(Self.programs, of: node, path).map { ExactString($0) }
    guard let rules = ProgramRules.text(present, adding: action, for: program) else {
      throw Failure(
        path.string, "\(program.string) can't stand in a rule, or the rules that are there can't be read")
    }
    try attempt(path) { () throws(StoreError) in
      let value = Array(rules.utf8)
      let permit = try tree.permission(toSet: Self.programs, to: value, of: node, by: caller)?.fetch()
      try tree.setAttribute(Self.programs, to: value, of: node, if: .always, by: caller, permit)
    }
  }

  /// nil: the node has no such attribute.
  private func value(_ name: String, of node: Node, _ path: TreePath) throws -> String? {
    try attempt(path) { () throws(StoreError) in
      do throws(StoreError) {
        return String(decoding: try tree.attribute(name, of: node), as: UTF8.self)
      } catch {
        if error == .noSuchAttribute { return nil }
        if case .unsupported = error { return nil }
        throw error
      }
    }
  }
}

/// The executable that a command line names.
package enum ProgramPath {
  /// Looks up a program: a path, or a name that is looked for in `PATH` as a shell does.
  ///
  /// - Parameter name: as a person writes it.
  /// - Returns: the absolute path, with the symbolic links that lead to it resolved: rules know a program by its file.
  /// - Throws: `Failure` where there is no such program.
  package static func resolve(_ name: String) throws -> ExactString {
    var candidates = [name]
    if !name.contains("/") {
      let folders = (environment("PATH") ?? "/usr/bin:/bin").split(separator: ":")
      candidates = folders.map { "\($0)/\(name)" }
    }
    guard let found = candidates.first(where: { Files.allows(.execute, $0) }),
      let path = try? Files.realPath(found)
    else { throw Failure(name, "there is no such program") }
    return ExactString(path)
  }

  /// Notes on the scripts that rules name.
  ///
  /// - Parameter rules: the lines of `user.keyhole.programs`.
  /// - Returns: a line for each script.
  package static func notes(onScriptsIn rules: String) -> [String] {
    (ProgramRules(ExactString(rules))?.rules ?? []).compactMap { rule in
      guard case .program(let path, _) = rule.subject, isScript(path.string) else { return nil }
      return
        "\(path.string) is a script: the rule fits where its interpreter opens the secret, and not a program that the "
        + "script starts; `keyhole log` shows which one does"
    }
  }

  private static func isScript(_ path: String) -> Bool {
    guard let file = try? Descriptor(path, .reading), let start = try? file.read(2) else { return false }
    return start == Array("#!".utf8)
  }
}
