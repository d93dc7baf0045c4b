/// An editor with its configuration, and the keys that a user presses in it.
struct Editor: Sendable, CustomStringConvertible {
  let name: String
  let program: String
  var options: [String] = []
  /// Its settings, by path in the home folder.
  var settings: [String: String] = [:]
  /// The text on the screen when it takes input.
  let ready: String
  let down: String
  /// Before and after text is put in at the beginning of a line.
  let insert: String
  var leave = ""
  let save: String
  /// The text on the screen when it has saved.
  let saved: String
  let quit: String
  /// Its output on standard error with any file.
  var farewell = ""
  /// The files that it leaves beside the file because it is configured to.
  var leaves: @Sendable (_ file: String) -> [String] = { _ in [] }
  /// Whether it can change bytes that are no text.
  var isBinary = false

  var description: String { name }
}

extension Editor {
  /// Every editor and setting of SPECIFICATION.md, section 6.
  static let all =
    vims + nvims + [
      nano("nano"), nano("nano with backups", ["-B"], leaves: { ["\($0)~"] }),
      emacs("emacs", "(setq auto-save-interval 20)", leaves: { ["\($0)~"] }),
      emacs("emacs without backups", "(setq make-backup-files nil auto-save-interval 20)"),
      emacs(
        "emacs that copies to back up", "(setq backup-by-copying t auto-save-interval 20)",
        leaves: { ["\($0)~"] }),
      Editor(
        name: "joe", program: "/usr/bin/joe", ready: "Joe's", down: "\u{0E}", insert: "\u{01}",
        save: "\u{0B}d\r",
        saved: "saved", quit: "\u{0B}q",
        farewell: "\nNo modified files, so no updates needed.\n", leaves: { ["\($0)~"] }),
    ]

  static let vims =
    [vim("vim", "")]
    + ["yes", "no", "auto"].map { copy in
      vim("vim, backupcopy=\(copy)", "set backupcopy=\(copy)\n")
    }
    + ["yes", "no", "auto"].map { copy in
      vim(
        "vim, backupcopy=\(copy), all on", "set backupcopy=\(copy) backup writebackup swapfile undofile\n",
        leaves: { ["\($0)~", ".\($0).un~"] })
    }

  static let nvims =
    [nvim("nvim", "")]
    + ["yes", "no", "auto"].map { copy in
      nvim(
        "nvim, backupcopy=\(copy), all on",
        "set backupcopy=\(copy) backup writebackup swapfile undofile backupdir=. directory=. undodir=.\n",
        leaves: { ["\($0)~", ".\($0).un~"] })
    }

  private static func vim(
    _ name: String, _ settings: String, leaves: @escaping @Sendable (String) -> [String] = { _ in [] }
  ) -> Editor {
    Editor(
      name: name, program: "/usr/bin/vim", settings: [".vimrc": settings], ready: "All", down: "j",
      insert: "0i", leave: "\u{1B}", save: ":w\r", saved: "written", quit: ":q\r", leaves: leaves,
      isBinary: true)
  }

  private static func nvim(
    _ name: String, _ settings: String, leaves: @escaping @Sendable (String) -> [String] = { _ in [] }
  ) -> Editor {
    Editor(
      name: name, program: "/usr/bin/nvim", settings: ["config/nvim/init.vim": settings], ready: "All",
      down: "j", insert: "0i", leave: "\u{1B}", save: ":w\r", saved: "written", quit: ":q\r", leaves: leaves,
      isBinary: true)
  }

  private static func nano(
    _ name: String, _ options: [String] = [],
    leaves: @escaping @Sendable (String) -> [String] = { _ in [] }
  ) -> Editor {
    Editor(
      name: name, program: "/usr/bin/nano", options: options, ready: "Exit", down: "\u{0E}",
      insert: "\u{01}", save: "\u{0F}\r", saved: "Wrote", quit: "\u{18}", leaves: leaves)
  }

  private static func emacs(
    _ name: String, _ settings: String, leaves: @escaping @Sendable (String) -> [String] = { _ in [] }
  ) -> Editor {
    Editor(
      name: name, program: "/usr/bin/emacs", options: ["-nw"], settings: [".emacs": settings],
      ready: "All", down: "\u{0E}", insert: "\u{01}", save: "\u{18}\u{13}", saved: "Wrote",
      quit: "\u{18}\u{03}",
      leaves: leaves)
  }
}
