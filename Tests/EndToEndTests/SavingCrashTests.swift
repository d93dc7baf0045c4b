import Glibc
import Synchronization
import Testing

/// Section 6: a value that is set aside while it is saved survives `kill -9` of the file system at every step, the old
/// one or the new, and never none.
@Suite(.timeLimit(.minutes(5))) struct SavingCrashTests {
  static let before = """
    mkdir defaults/s; printf old > defaults/s/file
    mkdir -p keychain/generic/s/p; printf old > keychain/generic/s/p/value; setfattr -n user.comment -v note keychain/generic/s/p
    """

  @Test(arguments: Steps.all)
  func valueSurvivesAKillAfterEachStep(steps: Steps) async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for path in ["defaults/s/file", "keychain/generic/s/p/value"] {
        for count in 0...steps.steps.count {
          var open: [OpenFile] = []
          for step in steps.steps.prefix(count) {
            let file = try step(keyhole / path)
            if let file { open.append(file) }
          }
          try keyhole.kill()
          open = []
          try keyhole.start()
          let found = try keyhole.cat(path)
          let allowed = count == steps.steps.count ? ["new"] : ["old", "new"]
          #expect(
            allowed.contains(found.split(separator: "\n").joined()),
            "\(steps), \(path), killed after \(count) steps: \(found)")
          try Self.checkAndReset(keyhole, path)
        }
      }
    }
  }

  /// Real editors, and the file system killed as it is about to make its n-th system call of a kind.
  @Test(
    .enabled(if: Privileges.isRoot, "needs root: traces the file system's process"),
    arguments: [
      "writev", "rename,renameat,renameat2", "fdatasync,fsync", "pwrite64,write", "unlink,unlinkat,ftruncate",
    ])
  func valueSurvivesAKillAtEachSystemCallOfASaveAsRoot(calls: String) async throws {
    try #require(System.exists("/usr/bin/strace"), "strace is missing; mount-helpers/test installs it")
    let saves = [
      "vim -u NONE -i NONE -N -es -c 'set backupcopy=no writebackup' -c 's/old/new/' -c w -c 'qa!'",
      "emacs -Q --batch --eval '(setq make-backup-files t backup-by-copying nil create-lockfiles t)' --eval '(with-current-buffer (find-file-noselect (pop command-line-args-left)) (erase-buffer) (insert \"new\") (save-buffer))'",
    ]
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for save in saves {
        for path in ["defaults/s/file", "keychain/generic/s/p/value"] {
          var kills = 0
          // Every third, as each starts an editor and a mount; each step of a save is above.
          while try Self.isKilled(keyhole, at: 3 * kills + 1, of: calls, in: "\(save) \(path)") {
            kills += 1
            let found = try keyhole.cat(path)
            #expect(
              ["old", "new"].contains(found.split(separator: "\n").joined()),
              "\(save) \(path) \(calls) \(kills): \(found)")
            try Self.checkAndReset(keyhole, path)
            try #require(kills < 300)
          }
          // It was not killed any more, so all went well, and it was killed before where there was such a call.
          #expect(try keyhole.cat(path).hasPrefix("new"), "\(save) \(path) \(calls)")
          #expect(calls != "writev" || kills > 1)
          try Self.checkAndReset(keyhole, path)
        }
      }
    }
  }

  /// Runs a save; returns whether the file system was killed by it, and then starts it again.
  private static func isKilled(
    _ keyhole: MountedKeyhole, at number: Int, of calls: String, in save: String
  ) throws -> Bool {
    let tracer = try Program(
      [
        "/bin/sh", "-c",
        "exec strace -f -o /dev/null -e trace=\(calls) -e inject=\(calls):signal=KILL:when=\(number) -p \(try keyhole.process) 2>&1",
      ], environment: keyhole.world.environment, directory: keyhole.world.outside)
    defer { tracer.kill() }
    while let line = try tracer.line(), !line.contains("attached") {}
    // Its output and exit code don't matter once its file system is gone.
    _ = try keyhole.sh("timeout -s KILL 20 \(save) < /dev/null")
    // Looking is a call too, so the tracer has to be gone before.
    try end(tracer, of: keyhole)
    guard failure({ _ = try System.status(keyhole / "defaults") }) != nil else { return false }
    try keyhole.kill()
    try keyhole.start()
    return true
  }

  /// Of a dead process's threads strace may wait for the first before it takes the others, without end; then it has to be
  /// killed. The process may die while strace ends already.
  private static func end(_ tracer: Program, of keyhole: MountedKeyhole) throws {
    for _ in 0..<30 {
      tracer.signal(try isDead(keyhole) ? SIGKILL : SIGTERM)
      if (try? tracer.waitForEnd(until: Deadline(in: .seconds(1)))) != nil { return }
    }
    try tracer.waitForEnd(until: Deadline(in: .seconds(1)))
  }

  /// Whether the file system's process has ended, or ends.
  private static func isDead(_ keyhole: MountedKeyhole) throws -> Bool {
    let state = try System.text("/proc/\(keyhole.process)/stat").split(separator: ")").last?.dropFirst().first
    return state == "Z" || state == "X"
  }

  /// Nothing else was touched and nothing was left; then the value is the old one again.
  private static func checkAndReset(_ keyhole: MountedKeyhole, _ path: String) throws {
    try keyhole.check(
      "rm -f defaults/s/*~ keychain/generic/s/p/*~; ls -A defaults/s keychain/generic/s/p; getfattr --only-values -n user.comment keychain/generic/s/p; printf old > \(path)",
      prints: "defaults/s:\nfile\n\nkeychain/generic/s/p:\nvalue\nnote")
  }
}

/// A way to save as single steps; a step may leave a file open.
struct Steps: Sendable, CustomStringConvertible {
  typealias Step = @Sendable (_ path: String) throws -> OpenFile?

  let name: String
  let steps: [Step]

  var description: String { name }

  static let all = [
    Steps(name: "vim, renaming away", steps: [move("", "~")] + create("") + [remove("~")]),
    Steps(name: "vim, copying", steps: create("~", "old") + create("") + [remove("~")]),
    Steps(name: "sed -i", steps: create(".tmp", prefix: ".") + [moveBack(".tmp", prefix: ".")]),
    Steps(
      name: "JetBrains",
      steps: create("___jb_tmp___") + [
        move("", "___jb_old___"), move("___jb_tmp___", ""), remove("___jb_old___"),
      ]),
    Steps(name: "in place", steps: create("")),
    Steps(
      name: "set aside and back",
      steps: [move("", "~")] + create(".x", prefix: ".") + [move("~", "")] + create("")),
  ]

  private static func place(_ path: String, _ ending: String, _ prefix: String = "") -> String {
    let name = path.split(separator: "/").last.map(String.init) ?? ""
    return path.dropLast(name.count) + prefix + name + ending
  }

  /// Open, write, fsync and close, each a step.
  private static func create(_ ending: String, _ text: String = "new", prefix: String = "") -> [Step] {
    let opened = Opened()
    return [
      { path in
        let file = try OpenFile(place(path, ending, prefix), O_WRONLY | O_CREAT | O_TRUNC)
        opened.file = file
        return file
      },
      { _ in
        try opened.file?.write(text); return nil
      },
      { _ in
        try opened.file?.sync(); return nil
      },
      { _ in
        try opened.file?.close(); return nil
      },
    ]
  }

  private static func move(_ from: String, _ to: String) -> Step {
    { path in
      try System.rename(place(path, from), place(path, to)); return nil
    }
  }

  private static func moveBack(_ ending: String, prefix: String) -> Step {
    { path in
      try System.rename(place(path, ending, prefix), path); return nil
    }
  }

  private static func remove(_ ending: String) -> Step {
    { path in
      try System.unlink(place(path, ending)); return nil
    }
  }
}

/// The file that one step opens and the next ones use.
private final class Opened: Sendable {
  private let held = Mutex<OpenFile?>(nil)

  var file: OpenFile? {
    get { held.withLock { $0 } }
    set { held.withLock { $0 = newValue } }
  }
}
