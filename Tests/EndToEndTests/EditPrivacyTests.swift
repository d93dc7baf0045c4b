import Glibc
import Testing

/// Which processes see the copy that `keyhole edit` makes, and when it is wiped.
@Suite(.timeLimit(.minutes(4))) struct EditPrivacyTests {
  static let item = "keychain/generic/s/p/value"
  static let patience = Duration.seconds(200)

  @Test(arguments: [item, "defaults/s/key"])
  func onlyWhatTheEditorStartedSeesTheCopy(path: String) async throws {
    try await withWorld { world in
      try world.check("echo one | keyhole set \(path); keyhole set defaults/other/key visible")
      try world.makeEditor(
        """
        ls -A "${1%/*}"; echo $(cat "$1"); sh -c 'echo $(cat "$0")' "$1"
        # Left by its parent, in a session of its own.
        sh -c 'setsid sh -c "read x < \\"$OUT/orphan\\"; cat \\"$0\\" > \\"$OUT/seen\\" 2>&1; echo > \\"$OUT/done\\"" "$0" &' "$1"
        echo > "$OUT/orphan"; read x < "$OUT/done"; echo $(cat "$OUT/seen")
        """)
      let name = path == Self.item ? "secret" : "key"
      // This shell and what it starts are in the process group of the editor.
      let output = try world.sh(
        """
        EDITOR="$OUT/editor" keyhole edit \(path) & read file < "$OUT/file"
        cat "$file" 2>&1 | sed 's/.*: //'; ls "${file%/*}" 2>&1 | sed 's/.*: //'; (echo x > "$file") 2> /dev/null
        stat -c %A "${file%/*}"; cat "${file%/*}/keychain/generic/keyhole/edit/\(name)" 2>&1 | sed 's/.*: //'
        grep -rs visible "$XDG_RUNTIME_DIR"
        echo > "$OUT/go"; wait
        """)
      #expect(
        output.text
          == "Permission denied\nPermission denied\ndrwx------\nPermission denied\n\(name)\none\none\none\n",
        "\(output)")
      #expect(output.error.contains("/cat (process "), "\(output)")
      try world.check(
        "keyhole get \(path); ls -A \"$XDG_RUNTIME_DIR/keyhole\"", prints: path == Self.item ? "one" : "one\n"
      )
    }
  }

  /// The command says which process asked in vain: an editor that hands its file on has shown nothing.
  @Test func whatWasRefusedIsSaid() async throws {
    try await withWorld { world in
      try world.check("echo one | keyhole set \(Self.item)")
      try world.makeEditor("")
      let output = try world.sh(
        """
        EDITOR="$OUT/editor" keyhole edit \(Self.item) & read file < "$OUT/file"
        cat "$file" 2> /dev/null; echo > "$OUT/go"; wait $!
        """)
      #expect(output.status == 0 && output.error.contains("/cat (process "), "\(output)")
    }
  }

  /// With the key file, where the mount reports the lock, and with a passphrase, where only the mount has the keys.
  @Test(arguments: ["", "echo horse | keyhole passphrase --weak --cost 14 2> /dev/null"])
  func lockWipesTheCopyAndNothingIsStored(passphrase: String) async throws {
    try await withKeyhole { keyhole in
      let world = keyhole.world
      try keyhole.check("echo one | keyhole set \(Self.item)")
      if !passphrase.isEmpty { try world.check(passphrase, within: Self.patience) }
      try world.makeEditor(
        """
        exec 3< "$1"; echo two > "$1"; echo > "$OUT/saved"
        # Until the command has learned of it.
        while cat "$1" > /dev/null 2>&1; do :; done
        for try in 'cat "$1"' 'cat <&3' 'echo three > "$1"' 'echo three > "$1~"' 'ls "${1%/*}"' 'mv "$1" "$1.old"'; do
          eval "$try" 2>&1 | sed 's/.*: //'
        done
        """)
      let output = try world.sh(
        """
        mkfifo "$OUT/saved"
        EDITOR="$OUT/editor" keyhole edit \(Self.item) & read file < "$OUT/file"; echo > "$OUT/go"
        read x < "$OUT/saved"; keyhole lock; wait $!
        """)
      let reason = "Required key not available\n"
      #expect(output.status == 1 && output.text == String(repeating: reason, count: 6), "\(output)")
      #expect(output.error.contains("locked while the editor ran"), "\(output)")
      try world.check("echo horse | keyhole unlock", within: Self.patience)
      try world.check(
        "keyhole get \(Self.item); ls -A \"$XDG_RUNTIME_DIR/keyhole\" | grep edit || true", prints: "one")
    }
  }

  /// On a machine that is busy the keychain locks before the editor has the copy: then once more.
  @Test func autoLockWipesTheCopy() async throws {
    try await withKeyhole("auto-lock=2") { keyhole in
      try keyhole.check(
        """
        printf '#!/bin/sh\nwhile cat "$1"; do :; done > /dev/null 2>&1\n' > "$OUT/editor"; chmod +x "$OUT/editor"
        until echo one | keyhole set \(Self.item) 2> /dev/null; do keyhole unlock < /dev/null; done
        until EDITOR=$OUT/editor keyhole edit \(Self.item) 2>&1 | grep -o 'locked while the editor ran'; do
          keyhole unlock < /dev/null
        done
        """, prints: "locked while the editor ran\n")
    }
  }

  /// A setting is not the keychain's, and what a mount had unlocked goes on without it where the key file opens it.
  @Test func otherEditsGoOn() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("echo one | keyhole set \(Self.item); keyhole set defaults/s/key one")
      try keyhole.world.makeEditor("echo two > \"$1\"")
      let edit = "keyhole edit \"$path\" & read file < \"$OUT/file\""
      try keyhole.world.check(
        """
        export EDITOR="$OUT/editor"
        path=defaults/s/key; \(edit); keyhole lock; echo > "$OUT/go"; wait $!; keyhole get $path; keyhole unlock < /dev/null
        path=\(Self.item); \(edit); keyhole unmount --lazy; echo > "$OUT/go"; wait $!; keyhole get $path
        """, prints: "two\ntwo")
    }
  }

  @Test func anEditorThatRemovesTheFileChangesNothing() async throws {
    try await withWorld { world in
      try world.check("echo one | keyhole set \(Self.item); keyhole set defaults/s/key one")
      for (path, value) in [(Self.item, "one"), ("defaults/s/key", "one\n")] {
        let output = try world.sh("EDITOR='rm -f' keyhole edit \(path)")
        #expect(output.status == 1 && output.error.contains("nothing was changed"), "\(output)")
        try world.check("keyhole get \(path)", prints: value)
      }
    }
  }

  @Test(arguments: [SIGTERM, SIGHUP, SIGKILL, SIGABRT])
  func theCopyGoesWithTheCommand(signal: Int32) async throws {
    try await withWorld { world in
      try world.check("echo one | keyhole set \(Self.item)")
      try world.makeEditor(
        "trap '' TERM HUP; read x < \"$OUT/later\"; cat \"$1\" 2> /dev/null; echo $? > \"$OUT/end\"")
      let output = try world.sh(
        """
        mkfifo "$OUT/later" "$OUT/end"
        EDITOR="$OUT/editor" keyhole edit \(Self.item) & read file < "$OUT/file"; echo > "$OUT/go"
        kill -\(signal) $!; wait $! 2> /dev/null; echo $?
        # fusermount3 unmounts what a killed process has left.
        while grep -q "$XDG_RUNTIME_DIR/keyhole/edit" /proc/self/mounts; do :; done
        echo > "$OUT/later"; cat "$OUT/end"; keyhole get \(Self.item)
        """)
      #expect(output.text == "\(128 + signal)\n1\none", "\(output)")
    }
  }

  /// An editor at work on its own terminal: its save fails, and it says why.
  @Test func vimSaysWhyItCanNotSaveAfterALock() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("echo one | keyhole set \(Self.item)")
      let session = try keyhole.world.terminal([
        "/usr/bin/env", "EDITOR=/usr/bin/vim", Products.keyhole, "edit", Self.item,
      ])
      try session.wait(for: "All")
      try keyhole.world.check("keyhole lock")
      let folder = "\(keyhole.world.runtime)/keyhole"
      let name = try System.names(folder).first { $0.hasPrefix("edit.") } ?? ""
      // The root shows its status to all, and nothing else to this process, before the lock and after it.
      #expect(failure { _ = try System.text("\(folder)/\(name)/secret") } != nil)
      try session.type("0itwo\u{1B}:w\r")
      try session.wait(for: "E")
      try session.type(":q!\r")
      let output = try session.finish()
      #expect(output.status == 1 && output.error.contains("locked while the editor ran"), "\(output)")
      try keyhole.world.check("keyhole unlock < /dev/null; keyhole get \(Self.item)", prints: "one")
    }
  }
}

extension World {
  /// `$OUT/editor`: tells its file on `$OUT/file`, waits for `$OUT/go`, and runs a script of the shell with it.
  fileprivate func makeEditor(_ script: String) throws {
    try check(
      """
      mkfifo "$OUT/file" "$OUT/go" "$OUT/orphan" "$OUT/done"; export OUT
      cat > "$OUT/editor" <<'END'
      #!/bin/bash
      echo "$1" > "$OUT/file"; read x < "$OUT/go"
      \(script.split(separator: "\n", omittingEmptySubsequences: false).joined(separator: "\n      "))
      END
      chmod +x "$OUT/editor"
      """)
  }
}
