import Formats
import KeychainSelection
import Model
import Platform
import SecretMemory

/// Writes the configuration of tools so that they call Keyhole, and takes exactly that back.
///
/// Each change is noted before it is made, in a file for each tool in the folder of the state.
package struct CredentialInstallation {
  private let tool: CredentialTool
  private let detail: String?
  private let journal: String

  /// `name`: of a tool, of `aws` with the profile behind a colon.
  ///
  /// - Throws: `Failure` for a tool that is not known.
  package init(_ name: String) throws {
    let parts = name.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    guard let tool = CredentialTool(rawValue: parts[0]), parts.count == 1 || tool == .aws else {
      let names = CredentialTool.allCases.map(\.rawValue).joined(separator: ", ")
      throw Failure(name, "there is no such tool; Keyhole knows \(names), where askpass is for ssh and sudo")
    }
    self.tool = tool
    detail = parts.count > 1 ? parts[1] : nil
    let file = name.replacing("/", with: "%2F")
    journal = try StoragePaths.current().state + "/credential-tools/\(file).json"
  }

  /// - Returns: lines for people: what was done, or with `isDry` what would be.
  /// - Throws: `Failure` where something is there that would be changed.
  package func install(isDry: Bool) throws -> String {
    if let noted = try notedSteps() {
      let missing = try missingSteps(of: noted)
      guard !missing.isEmpty else { return "\(tool.rawValue): it is installed already\n" }
      guard !isDry else { return missing.map(\.plan).joined() + (tool.nextSteps ?? "") }
      // The steps that are still in place are taken back too: all of them are written as for the first time.
      for step in noted.reversed() { _ = try step.revert() }
      try removeJournal()
    }
    let steps = try ConfigurationStep.countingFolders(tool.steps(detail))
    let nextSteps = tool.nextSteps ?? ""
    guard !isDry else { return steps.map(\.plan).joined() + nextSteps }
    try ConfigurationFile.write(Array(text(of: steps).utf8), to: journal)
    for (index, step) in steps.enumerated() {
      do { try step.apply() } catch {
        for done in steps[..<index].reversed() { _ = try? done.revert() }
        _ = try? Files.remove(journal)
        throw error
      }
    }
    return steps.map { "wrote \($0.plan)" }.joined() + nextSteps
  }

  /// Those of the steps that were made and are not in place any more.
  ///
  /// - Throws: `Failure` where another text has the place of one; nothing was changed.
  private func missingSteps(of noted: [ConfigurationStep]) throws -> [ConfigurationStep] {
    let outcomes = try noted.map { try $0.revert(isDry: true) }
    let changed = zip(noted, outcomes).filter { $0.1 == .changed }.map(\.0.path)
    guard changed.isEmpty else {
      throw Failure(
        changed.joined(separator: ", "),
        "what was written there for \(tool.rawValue) has been changed since, and stays; take it out by hand, then the same command again"
      )
    }
    return zip(noted, outcomes).filter { $0.1 == .missing }.map(\.0)
  }

  /// - Returns: lines for people.
  /// - Throws: `Failure` where nothing was installed, and where the user has changed what was: the file stays as it is.
  package func uninstall(isDry: Bool) throws -> String {
    guard let steps = try notedSteps() else {
      throw Failure(tool.rawValue, "nothing was written for it by `keyhole credential install`", .notFound)
    }
    guard !isDry else { return steps.map { "take back: \($0.plan)" }.joined() }
    var (lines, changed): (String, [String]) = ("", [])
    for step in steps.reversed() {
      switch try step.revert() {
      case .done: lines += "\(step.path): taken back\n"
      case .missing: lines += "\(step.path): nothing of it is there any more\n"
      case .changed: changed.append(step.path)
      }
    }
    guard changed.isEmpty else {
      throw Failure(
        changed.joined(separator: ", "),
        "what was written there has been changed since, and stays; take it out by hand, then remove \(journal)"
      )
    }
    try removeJournal()
    return lines
  }

  private func removeJournal() throws {
    do throws(Errno) { _ = try Files.remove(journal) } catch {
      throw Failure(journal, "it can't be removed: \(error)")
    }
    // Only where no other tool is noted there.
    try? Files.removeFolder(Files.folder(of: journal))
  }
}

// MARK: Checks

extension CredentialInstallation {
  /// The notes of `keyhole doctor`: what was written for a tool and is not there any more.
  static func notes(_ places: StoragePaths) -> [Note] {
    let ending = ".json"
    let files = ((try? Files.names(in: places.state + "/credential-tools")) ?? []).sorted()
    return files.filter { $0.hasSuffix(ending) }.flatMap { file -> [Note] in
      let name = file.dropLast(ending.count).replacing("%2F", with: "/")
      return (try? CredentialInstallation(String(name)))?.notes(name: String(name)) ?? []
    }
  }

  private func notes(name: String) -> [Note] {
    let steps = (try? notedSteps()) ?? []
    let command = "`keyhole credential install \(name.quotedForShell)`"
    return steps.compactMap { step in
      let words: (reason: String, remedy: String)
      switch try? step.revert(isDry: true) {
      case .missing?: words = ("is not there any more", "\(command) writes it again")
      case .changed?:
        words = ("has been changed since", "take it out by hand, and \(command) writes it again")
      default: return nil
      }
      return Note(
        subject: step.path,
        reason:
          "what was written there for \(tool.rawValue) \(words.reason); \(tool.rawValue) may keep passwords elsewhere, in plain text",
        remedy: words.remedy)
    }
  }
}

// MARK: The journal

extension CredentialInstallation {
  private func text(of steps: [ConfigurationStep]) -> String {
    let lines = steps.map { step in
      var fields = [("file", step.path)]
      switch step.change {
      case .append(let text): fields.append(("append", text))
      case .insert(let text, let line): fields += [("insert", text), ("after", line)]
      case .replace(let text, let line): fields += [("replace", text), ("line", line)]
      case .file(let text): fields.append(("text", text))
      case .link(let target): fields.append(("link", target))
      case .member(let name, let value): fields += [("member", name), ("value", value)]
      }
      if step.isNewFile { fields.append(("new", "true")) }
      if step.newFolders > 0 { fields.append(("folders", "\(step.newFolders)")) }
      return "  {" + fields.map { "\($0.quotedAsJSON): \($1.quotedAsJSON)" }.joined(separator: ", ") + "}"
    }
    return "[\n\(lines.joined(separator: ",\n"))\n]\n"
  }

  /// nil: nothing was installed.
  private func notedSteps() throws -> [ConfigurationStep]? {
    guard let bytes = try ConfigurationFile.read(journal) else { return nil }
    let source = ByteSource(try .init(copying: bytes.span))
    return try reading(journal) { () throws(FormatError) in
      var steps: [ConfigurationStep] = []
      var scanner = JSONScanner(source)
      try scanner.elements { (scanner) throws(FormatError) in
        var fields: [String: String] = [:]
        try scanner.members { (name, scanner) throws(FormatError) in
          fields[name] = try scanner.optionalString()?.text()
        }
        guard let step = ConfigurationStep(fields) else { throw FormatError("a step is not known") }
        steps.append(step)
      }
      try scanner.end()
      return steps
    }
  }
}

extension ConfigurationStep {
  /// By the fields of the journal.
  fileprivate init?(_ fields: [String: String]) {
    guard let path = fields["file"] else { return nil }
    let change: Change
    if let text = fields["append"] {
      change = .append(text)
    } else if let text = fields["insert"], let line = fields["after"] {
      change = .insert(text, after: line)
    } else if let text = fields["replace"], let line = fields["line"] {
      change = .replace(text, line: line)
    } else if let text = fields["text"] {
      change = .file(text)
    } else if let target = fields["link"] {
      change = .link(target)
    } else if let name = fields["member"], let value = fields["value"] {
      change = .member(name, value: value)
    } else {
      return nil
    }
    self.init(path: path, change: change, isNewFile: fields["new"] == "true")
    newFolders = max(0, fields["folders"].flatMap { Int($0) } ?? 0)
  }
}
