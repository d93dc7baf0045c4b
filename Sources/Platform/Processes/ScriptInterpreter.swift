/// An interpreter that the system's administrator installed, whose first argument is the script that it runs.
///
/// The script of an interpreter is known from its command line only, which the process can change. A rule for a script
/// separates scripts that a user trusts from each other; it does not hold against a program that means to be taken for one.
///
/// A relative path counts from the directory in which the process was started, which is known as long as it is still the current one,
/// or while a shell has its script open.
package struct ScriptInterpreter {
  private static let folders = ["/usr/bin", "/bin", "/usr/local/bin"]

  /// Names, after which a version may stand: `python3.11`, `lua5.4`, `guile-3.0`.
  private static let names: Set<Substring> = [
    "sh", "ash", "bash", "dash", "ksh", "mksh", "zsh", "fish", "python", "perl", "ruby", "node", "nodejs",
    "lua", "luajit",
    "php", "tclsh", "guile",
  ]

  /// nil: it is none of the list, or not installed by root for all users.
  package init?(path: String, file: FileID) {
    guard let slash = path.lastIndex(of: "/"), Self.folders.contains(String(path[..<slash])),
      Self.isInterpreter(path[path.index(after: slash)...])
    else { return nil }
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

  /// The descriptors with which bash and dash read their scripts.
  private static let scriptDescriptors = [255, 10]

  /// The absolute path of the first argument, unless that is an option; nil also where it is relative and counts from a directory that is
  /// not known.
  package func script(of files: ProcessFiles) -> String? {
    let words = files.commandLine
    guard words.count > 1, !words[1].isEmpty, !words[1].hasPrefix("-") else { return nil }
    let word = words[1]
    if word.hasPrefix("/") { return word }
    let name = Files.name(of: word)
    for number in Self.scriptDescriptors {
      // Another script than that of the command line may be read by a program of the interpreter.
      if let path = files.path(ofDescriptor: number), path.hasPrefix("/"), Files.name(of: path) == name {
        return path
      }
    }
    // A process that has changed its directory, or that was started in another one than its parent's, has another PWD. Nothing is looked
    // up: the directory may be one of the mount that waits for this.
    guard let current = files.workingDirectory, current == files.firstVariable("PWD") else { return nil }
    return current + "/" + (word.hasPrefix("./") ? String(word.dropFirst(2)) : word)
  }
}

extension Character {
  fileprivate var isASCIIDigit: Bool { ("0"..."9").contains(self) }
}
