import Model
import Platform

/// The user's editor, and what keeps it from writing what it edits to a disk.
package struct EditorProgram: Sendable {
  /// As a shell reads it: `vim`, or `code --wait`.
  let command: String
  private let kind: Kind?

  /// Editors whose options are known.
  private enum Kind {
    case vim
    case nvim
    case nano
    case emacs
    case joe
    case micro
  }

  /// - Throws: `Failure` where there is no such program.
  package static func chosen() throws -> EditorProgram {
    let command = variable("VISUAL") ?? variable("EDITOR") ?? "vi"
    let word = command.prefix { $0 != " " && $0 != "\t" }
    guard let path = find(String(word)) else {
      throw Failure(command, "there is no such editor; set VISUAL or EDITOR")
    }
    return EditorProgram(command: command, names: [String(word), resolved(path)])
  }

  /// `names`: those of the program, of which the first that is known says which editor it is.
  init(command: String, names: [String]) {
    self.command = command
    kind = names.lazy.compactMap(Self.kind).first
  }

  /// Runs it on a file, on this terminal, and returns its exit code. `onStart` gets the number of its process.
  ///
  /// - Throws: `Failure` where it can't be started.
  package func run(on file: String, temporaries folder: String, onStart: (Int32) -> Void) throws -> Int32 {
    let words = ["/bin/sh", "-c", "\(command) \"$@\"", "sh"] + options + [file]
    // Known ones make folders for their temporaries, which this one can't have.
    let variables = kind == nil ? ["TMPDIR", "TMP", "TEMP"].map { "\($0)=\(folder)" } : []
    // Signals of the terminal to all processes are for the editor.
    do throws(SpawnFailure) {
      return try Signals.ignoring(.quit) { () throws(SpawnFailure) in
        try Child.run(words, variables: variables, onStart: onStart)
      }
    } catch {
      throw Failure(error.program, error.reason)
    }
  }

  /// Options that keep the editor from writing its text to a disk; empty: the editor is not known.
  var options: [String] {
    switch kind {
    case .vim, .nvim:
      // The swap file; what is remembered of registers; and after the user's settings, all else.
      ["-n", "-i", "NONE", "-c", "set nobackup nowritebackup noswapfile noundofile"]
    // The settings could name a folder for backups, and no option takes that back.
    case .nano: ["--ignorercfiles"]
    case .emacs: ["--eval", Self.emacsSettings]
    case .joe: ["-nobackups"]
    case .micro:
      ["backup", "savehistory", "savecursor", "saveundo"].flatMap { ["-\($0)", "false"] }
    case nil: []
    }
  }

  private static let emacsSettings = """
    (progn (setq make-backup-files nil auto-save-default nil auto-save-list-file-prefix nil create-lockfiles nil) \
    (dolist (mode '(savehist-mode save-place-mode recentf-mode desktop-save-mode global-undo-tree-mode)) \
    (when (and (boundp mode) (symbol-value mode)) (funcall mode -1))))
    """

  private static func kind(of program: String) -> Kind? {
    let name = program.split(separator: "/").last.map(String.init) ?? program
    switch name.prefix(while: { $0 != "." && $0 != "-" }) {
    case "vim", "gvim", "rvim", "rgvim", "evim": return .vim
    case "nvim": return .nvim
    case "nano", "rnano": return .nano
    case "emacs": return .emacs
    case "joe", "jmacs", "jpico", "jstar", "rjoe": return .joe
    case "micro": return .micro
    default: return nil
    }
  }

  private static func variable(_ name: String) -> String? {
    Environment.value(name).flatMap { $0.allSatisfy(\.isWhitespace) ? nil : $0 }
  }

  private static func find(_ program: String) -> String? {
    if program.contains("/") { return Files.allows(.execute, program) ? program : nil }
    let folders = (variable("PATH") ?? "/usr/bin:/bin").split(separator: ":")
    return folders.map { "\($0)/\(program)" }.first { Files.allows(.execute, $0) }
  }

  /// `vi` is a name that many editors go by.
  private static func resolved(_ path: String) -> String {
    (try? Files.realPath(path)) ?? path
  }
}
