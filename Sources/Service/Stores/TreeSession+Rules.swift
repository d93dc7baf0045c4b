package import Model
import Platform
import Store
import Tree
import VaultRecords

/// The rules for programs that hold at a path, in the order in which they are tried.
package struct EffectiveRules {
  /// A rule, the path where it is written, and the hosts on which it holds; nil: there are no others.
  package private(set) var lines: [(place: String, rule: String, hosts: String?)] = []
  /// Whether the item has access flags.
  var hasFlags = false
  /// The number of this device in the keychain's cluster; nil: it is no cluster's.
  let host: ExactString?

  init(on host: ExactString?) { self.host = host }

  /// The decision on programs that no rule names.
  package var remainder: String {
    let rules = lines.compactMap { ProgramRules(ExactString($0.rule))?.rules.first }
    if rules.contains(where: { $0.subject == .every && $0.action(on: host) != nil }) {
      return "no other programs"
    }
    return hasFlags || rules.contains { $0.action == .allow } ? "ask" : "allow"
  }

  mutating func add(_ text: String, at place: String) {
    lines += text.split(separator: "\n").map { line in
      let rule = ProgramRules(ExactString(String(line)))?.rules.first
      return (place, String(line), rule.flatMap(hosts))
    }
  }

  private func hosts(of rule: ProgramRules.Rule) -> String? {
    let action = rule.action(on: host)
    if let action, action != rule.action {
      return "asks: it names \(rule.host == nil ? "no device" : "a device of a cluster")"
    }
    guard host != nil else { return nil }
    return action == nil ? "on another device" : rule.isOfOneDevice ? "on this device" : "on all devices"
  }
}

extension TreeSession {
  private static let programs = "user.keyhole.programs"
  private static let access = "user.keyhole.access"

  /// - Throws: `Failure` where the path is not one of the keychain.
  package func effectiveRules(at path: TreePath) throws -> EffectiveRules {
    var (rules, components) = (EffectiveRules(on: host), path.components[...])
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

  private var host: ExactString? { tree.keychain?.engine.host }

  /// Writes a rule for a program before the other rules at a path; of a guarded item a person is asked first.
  ///
  /// - Parameters:
  ///   - action: the action of the rule.
  ///   - program: an absolute path.
  ///   - path: an item, a service or server, or `keychain`.
  ///   - host: the devices of a cluster on which it is to hold; nil: this one, or, where the keychain is no cluster's, none is named.
  /// - Throws: `Failure` that names the path.
  package func addRule(
    _ action: ProgramRules.Action, for program: ExactString, at path: TreePath,
    on host: ProgramRules.Host? = nil
  ) throws {
    let node = try node(at: path)
    let present = try value(Self.programs, of: node, path).map { ExactString($0) }
    let own = self.host
    guard host == nil || own != nil else {
      throw Failure(path.string, "its keychain is of this machine alone: rules there name no hosts")
    }
    let chosen = host ?? own.map(ProgramRules.Host.device)
    guard let rules = ProgramRules.text(present, adding: action, for: program, on: chosen) else {
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

extension ProgramRules.Host {
  /// `all`, or the number of a device; nil: it is neither.
  package init?(option: String) {
    if option == "all" {
      self = .all
    } else if let device = ItemKey(ItemID(rawValue: option)), device.text == option {
      self = .device(ExactString(option))
    } else {
      return nil
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
    // A script may be one that its interpreter only reads.
    guard
      let found = candidates.first(where: { isFile($0) && (name.contains("/") || Files.allows(.execute, $0)) }
      ),
      let path = try? Files.realPath(found)
    else { throw Failure(name, "there is no such program", .notFound) }
    return ExactString(path)
  }

  private static func isFile(_ path: String) -> Bool { (try? Files.status(path))?.kind == .regular }

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
