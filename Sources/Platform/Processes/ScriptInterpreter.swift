/// An interpreter that the system's administrator installed, whose first argument is the script that it runs.
///
/// The script of an interpreter is known from its command line only, which the process can change. A rule for a script
/// separates scripts that a user trusts from each other; it does not hold against a program that means to be taken for one.
///
/// A relative path counts from the directory in which the process was started, which is not known: it is looked for among the files that
/// a shell has open, and of other interpreters such a script is unknown.
package struct ScriptInterpreter {
  private static let folders = ["/usr/bin", "/bin", "/usr/local/bin"]

  /// Names, after which a version may stand: `python3.11`, `lua5.4`, `guile-3.0`.
  private static let names: Set<Substring> = [
    "sh", "ash", "bash", "dash", "ksh", "mksh", "zsh", "fish", "python", "perl", "ruby", "node", "nodejs",
    "lua", "luajit",
    "php", "tclsh", "guile",
  ]

  private let isShell: Bool

  /// nil: it is none of the list, or not installed by root for all users.
  package init?(path: String, file: FileID) {
    guard let slash = path.lastIndex(of: "/"), Self.folders.contains(String(path[..<slash])),
      Self.isInterpreter(path[path.index(after: slash)...])
    else { return nil }
    isShell = Self.shells.contains(path[path.index(after: slash)...])
    guard let status = try? Files.status(path), status.id == file,
      status.owner == 0, status.permissions & 0o022 == 0
    else { return nil }
  }

  /// Whether a file's name is that of an interpreter, alone or with a version.
  package static func isInterpreter(_ name: Substring) -> Bool {
    if names.contains(name) { return true }
    guard let digit = name.firstIndex(where: \.isNumber) else { return false }
    let version = name[digit...].split(separator: ".", omittingEmptySubsequences: false)
    guard version.count <= 3,
      version.allSatisfy({ (1...3).contains($0.count) && $0.allSatisfy(\.isASCIIDigit) })
    else { return false }
    let word = name[..<digit]
    return names.contains(word) || (word.last == "-" && names.contains(word.dropLast()))
  }

  /// Shells, which read their script from a descriptor from 10 on: bash 255, the others the first that is free.
  private static let shells: Set<Substring> = ["sh", "ash", "bash", "dash", "ksh", "mksh", "zsh"]
  private static let scriptDescriptors = [255] + Array(10..<32)

  /// The absolute path of the first argument, unless that is an option; nil also where it is relative and the interpreter has no file of
  /// that name open.
  package func script(of files: ProcessFiles) -> String? {
    let words = files.commandLine
    guard words.count > 1, !words[1].isEmpty, !words[1].hasPrefix("-") else { return nil }
    if words[1].hasPrefix("/") { return words[1] }
    guard isShell else { return nil }
    let name = Files.name(of: words[1])
    let paths = Self.scriptDescriptors.lazy.compactMap { files.path(ofDescriptor: $0) }
    return paths.first { $0.hasPrefix("/") && Files.name(of: $0) == name }
  }
}

extension Character {
  fileprivate var isASCIIDigit: Bool { ("0"..."9").contains(self) }
}
