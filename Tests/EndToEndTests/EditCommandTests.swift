import Glibc
import Testing

/// Section 10: `keyhole edit`, and that it leaves nothing on a disk.
@Suite(.timeLimit(.minutes(2))) struct EditCommandTests {
  static let before = """
    keyhole set defaults/s/text one; keyhole set defaults/s/number 1; keyhole set defaults/s/list '["one"]'
    echo one | keyhole set keychain/generic/s/p/value
    """
  static let replace = "EDITOR='sed -i s/one/two/' keyhole edit"

  @Test func editStoresWhatTheEditorSavedWithoutAMount() async throws {
    try await withWorld { world in
      try world.check(Self.before)
      try world.check(
        """
        for path in defaults/s/text defaults/s/list keychain/generic/s/p/value; do
          \(Self.replace) $path; keyhole get $path
        done
        keyhole attr defaults/s/list keyhole.type; keyhole ls keychain/generic/s/p; ls -A "$XDG_RUNTIME_DIR/keyhole"
        """, prints: "two\n[\n  \"two\"\n]\ntwoarray\nvalue\n")
    }
  }

  @Test func editStoresWhatTheEditorSavedWithAMount() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      try keyhole.check("\(Self.replace) defaults/s/text; \(Self.replace) keychain/generic/s/p/value")
      let isSeen = try holds {
        try keyhole.cat("defaults/s/text") + keyhole.cat("keychain/generic/s/p/value") == "two\ntwo"
      }
      #expect(isSeen)
      try keyhole.check(
        "ls -A keychain/generic/s/p defaults/s | sort | tr '\\n' ' '",
        prints: " defaults/s: keychain/generic/s/p: list number text value ")
      // The one mount is still the only one.
      try keyhole.check(
        "keyhole unmount \"$MOUNT\" 2>&1 | head -1; ls -A \"$XDG_RUNTIME_DIR/keyhole\" | grep edit || true",
        prints:
          "keyhole: \(keyhole.mount): it is in use; close the files and leave the folders there, or use `keyhole unmount --lazy`\n"
      )
    }
  }

  @Test func editMakesWhatIsNotThere() async throws {
    try await withWorld { world in
      try world.check(
        """
        export EDITOR='cp "$OUT/new"'; echo 42 > "$OUT/new"
        keyhole edit defaults/fresh/key; keyhole get defaults/fresh/key; keyhole attr defaults/fresh/key keyhole.type
        keyhole edit keychain/internet/my.server/peter/value; keyhole get keychain/internet/my.server/peter/value
        """, prints: "42\ninteger\n42")
      // One that is not saved is not made.
      try world.check("EDITOR=true keyhole edit defaults/other/key; keyhole ls defaults", prints: "fresh\n")
    }
  }

  @Test func nothingChangesWithoutASave() async throws {
    try await withWorld { world in
      try world.check(Self.before)
      try world.check(
        "keyhole attr keychain/generic/s/p keyhole.created 2020-01-02T03:04:05Z; keyhole attr keychain/generic/s/p keyhole.modified 2020-01-02T03:04:05Z"
      )
      try world.check(
        """
        inode=$(stat -c %i "$CONFIG/s.plist")
        for path in defaults/s/text keychain/generic/s/p/value; do
          EDITOR=true keyhole edit $path; EDITOR='touch' keyhole edit $path; EDITOR='sed -i s/x/y/' keyhole edit $path
        done
        # An editor that ends the last line has not changed the secret.
        EDITOR='sed -i -e \\$a\\\\' keyhole edit keychain/generic/s/p/value
        test $inode = $(stat -c %i "$CONFIG/s.plist") && keyhole attr keychain/generic/s/p keyhole.modified
        """, prints: "2020-01-02T03:04:05Z\n")
    }
  }

  @Test(arguments: [
    ("EDITOR=false keyhole edit defaults/s/text", "exit code 1"),
    ("EDITOR='sh -c \"echo two > \\$1; exit 3\" sh' keyhole edit defaults/s/text", "exit code 3"),
    ("EDITOR='sh -c \"echo two > \\$1\" sh' keyhole edit defaults/s/number", "the key's type"),
    ("EDITOR=no-such-editor keyhole edit defaults/s/text", "no such editor"),
    ("EDITOR=true keyhole edit defaults/s", "folder"), ("EDITOR=true keyhole edit defaults/s/a/b", ""),
    ("EDITOR=true keyhole edit keychain/generic/s", ""),
    (
      "EDITOR='sh -c \"echo two > \\$1; keyhole set defaults/s/text one; keyhole set defaults/s/text three; keyhole set defaults/s/number 1\" sh' keyhole edit defaults/s/text && false",
      "another program"
    ),
    ("EDITOR='head -c 1100000 /dev/zero | tee' keyhole edit keychain/generic/s/p/value", ""),
  ])
  func failureKeepsTheValueAndSaysWhy(script: String, reason: String) async throws {
    try await withWorld { world in
      try world.check(Self.before)
      let output = try world.sh("\(script) > \"$OUT/output\"")
      let isMissing = script.hasSuffix("defaults/s/a/b")
      #expect(
        output.status == (isMissing ? 3 : 1) && output.error.hasPrefix("keyhole: "), "\(script): \(output)")
      #expect(output.error.contains(reason) && output.error.split(separator: "\n").count == 1, "\(output)")
      let others = reason == "another program" ? "three" : "one"
      try world.check(
        "keyhole get defaults/s/text; keyhole get defaults/s/number; keyhole get keychain/generic/s/p/value; find \"$XDG_RUNTIME_DIR\" -name 'edit.*'",
        prints: "\(others)\n1\none")
    }
  }

  @Test func visualComesFirstAndViIsTheDefault() async throws {
    try await withWorld { world in
      try world.check(
        """
        mkdir "$OUT/bin"; printf '#!/bin/sh\\necho vi > "$1"\\n' > "$OUT/bin/vi"; chmod +x "$OUT/bin/vi"; PATH="$OUT/bin:$PATH"
        keyhole edit defaults/s/a; VISUAL= EDITOR=' ' keyhole edit defaults/s/b
        EDITOR=false VISUAL="sh -c 'echo visual > \\"\\$1\\"' sh" keyhole edit defaults/s/c
        keyhole get defaults/s/a; keyhole get defaults/s/b; keyhole get defaults/s/c
        """, prints: "vi\nvi\nvisual\n")
    }
  }

  @Test func otherEditorsHaveTheirTemporariesInMemory() async throws {
    try await withWorld { world in
      try world.check(
        """
        echo secret | keyhole set keychain/generic/s/p/value
        EDITOR="sh -c 'cp \\"\\$1\\" \\"\\$TMPDIR/copy\\"; stat -f -c %T \\"\\$1\\" \\"\\$TMPDIR/copy\\"; stat -c %a \\"\\$1\\"; mktemp -p \\"\\$TMPDIR\\" > /dev/null' sh" keyhole edit keychain/generic/s/p/value
        """, prints: "fuseblk\nfuseblk\n600\n")
    }
  }

  @Test func whatAKilledEditLeftIsRemovedByTheNext() async throws {
    try await withWorld { world in
      try world.check(Self.before)
      let program = try Program(
        [
          "/usr/bin/env", "EDITOR=sh -c 'echo ready; read line'", Products.keyhole, "edit", "defaults/s/text",
        ],
        environment: world.environment, directory: world.outside)
      #expect(try program.line() == "ready")
      program.kill()
      _ = try program.waitForEnd(until: Deadline(in: .seconds(10)))
      try world.check(
        "\(Self.replace) defaults/s/text; keyhole get defaults/s/text; ls -A \"$XDG_RUNTIME_DIR/keyhole\"",
        prints: "two\n")
    }
  }

  /// Editors whose settings put swap, undo, backups and history into the home folder, as many people have them.
  @Test(arguments: Editor.hoarders)
  func nothingOfASecretIsOnTheDisk(editor: Editor) async throws {
    try await withKeyhole { keyhole in
      let desk = try Desk(keyhole)
      let world = keyhole.world
      try editor.setUp(world)
      try world.check("mkdir \"$HOME/kept\"")
      for file in [EditedFile.key, .secret] {
        // Started plainly first, which shows that the search would find it. Twice, because a backup has what was there.
        for isPlain in [true, false] {
          let marker = "\(desk.marker)\(isPlain)"
          for _ in 1...2 { try Self.edit(file, adding: marker, with: editor, isPlain: isPlain, keyhole) }
          // Root's nano reads the settings of root's own home, whatever HOME says.
          guard !isPlain || editor.name != "nano" || !Privileges.isRoot else { continue }
          #expect(try world.kept(marker).isEmpty != isPlain, "\(editor): \(file.path) plain: \(isPlain)")
        }
      }
    }
  }

  private static func edit(
    _ file: EditedFile, adding marker: String, with editor: Editor, isPlain: Bool, _ keyhole: MountedKeyhole
  ) throws {
    let words = [editor.program] + editor.options
    let command =
      isPlain
      ? words + [keyhole / file.path]
      : ["/usr/bin/env", "EDITOR=\(words.joined(separator: " "))", Products.keyhole, "edit", file.path]
    let session = try keyhole.world.terminal(command)
    try session.wait(for: editor.ready)
    try session.type("\(editor.insert)\(marker)\(editor.leave)")
    try session.type(editor.save)
    try session.wait(for: editor.saved)
    #expect(try isPlain || keyhole.world.kept(marker).isEmpty, "\(editor), while it runs")
    try session.type(editor.quit)
    #expect(try session.finish().isSuccess(saying: editor.farewell), "\(editor): \(file.path)")
    let isSeen = try holds { try keyhole.cat(file.path).contains(marker) }
    #expect(isSeen, "\(editor): \(file.path)")
  }
}

extension World {
  /// The files with a text, where editors leave such.
  fileprivate func kept(_ text: String) throws -> [String] {
    try sh(
      """
      find '\(root)' -path '\(mount)' -prune -o -path "$XDG_RUNTIME_DIR/keyhole" -prune -o -type f -exec grep -laF \(text) {} +
      find /tmp /var/tmp -xdev -maxdepth 3 -path '\(root)' -prune -o -type f -newer '\(log)' -exec grep -laF \(text) {} + 2> /dev/null
      """
    ).lines
  }
}

extension Editor {
  /// Editors that keep as much as they can, in the home folder, and keys that put the text where they keep it.
  static let hoarders = [
    vim(
      "vim",
      "set backup writebackup swapfile undofile viminfo='100,<1000 backupdir=~/kept directory=~/kept undodir=~/kept\n"
    ),
    Editor(
      name: "nvim", program: "/usr/bin/nvim",
      settings: [
        "config/nvim/init.vim":
          "set backup writebackup swapfile undofile backupdir=~/kept directory=~/kept undodir=~/kept\n"
      ], ready: "All", down: "j", insert: "0i", leave: "\u{1B}yy", save: ":w\r", saved: "written",
      quit: ":q\r"),
    Editor(
      name: "nano", program: "/usr/bin/nano",
      settings: [".nanorc": "set backup\nset backupdir \"~/kept\"\nset historylog\n"], ready: "Exit",
      down: "\u{0E}", insert: "\u{01}", save: "\u{0F}\r\u{0F}\r", saved: "Wrote", quit: "\u{18}"),
    Editor(
      name: "emacs", program: "/usr/bin/emacs", options: ["-nw"],
      settings: [
        ".emacs": """
        (setq backup-directory-alist '(("." . "~/kept")) auto-save-file-name-transforms '((".*" "~/kept/" t)))
        (setq savehist-additional-variables '(kill-ring) history-length 100 kept-new-versions 9 version-control t)
        (savehist-mode 1)
        """
      ], ready: "All", down: "\u{0E}", insert: "\u{01}", leave: "\u{01}\u{0B}\u{19}",
      save: "\u{18}\u{13}", saved: "Wrote", quit: "\u{18}\u{03}"),
  ]

  private static func vim(_ name: String, _ settings: String) -> Editor {
    Editor(
      name: name, program: "/usr/bin/vim", settings: [".vimrc": settings], ready: "All", down: "j",
      insert: "0i", leave: "\u{1B}yy", save: ":w\r", saved: "written", quit: ":q\r")
  }
}
