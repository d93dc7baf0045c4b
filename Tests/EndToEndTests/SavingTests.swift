import Glibc
import Testing

/// Section 6: how programs with windows save, by their system calls.
@Suite(.timeLimit(.minutes(1))) struct SavingTests {
  @Test(arguments: Save.all)
  func saveKeepsKeyAndItem(save: Save) async throws {
    try await withKeyhole("history=0") { keyhole in
      let desk = try Desk(keyhole)
      for file in EditedFile.all {
        let folder = keyhole / file.folder
        try desk.watch(
          file, saves: file.isSecret ? 2 : 2 * save.commits, leaving: save.leaves(file.name), save.name
        ) {
          for time in 1...2 {
            let content = file.after(desk.marker, time)
            try save.perform(
              Save.Job(folder: folder, name: file.name, content: content, elsewhere: keyhole.world.outside))
            #expect(try System.read(keyhole / file.path) == content, "\(save): \(file.path)")
          }
        }
      }
      try desk.search(save.name)
    }
  }

  /// Content that is no value of the type can't replace one, however it is saved, and the old value stays.
  @Test(arguments: Save.all)
  func saveOfWhatIsNoValueLosesNothing(save: Save) async throws {
    try await withKeyhole("history=0") { keyhole in
      let desk = try Desk(keyhole)
      let file = EditedFile.integer
      let job = Save.Job(
        folder: keyhole / file.folder, name: file.name, content: Array("no number\n".utf8),
        elsewhere: keyhole.world.outside)
      #expect(failure { try save.perform(job) } == .invalid, "\(save)")
      try keyhole.remount()
      #expect(try System.read(keyhole / file.path) == file.before, "\(save)")
      _ = desk
    }
  }
}

/// A way to save.
struct Save: Sendable, CustomStringConvertible {
  struct Job {
    let folder: String
    let name: String
    let content: [UInt8]
    /// A folder on another file system.
    let elsewhere: String

    var path: String { "\(folder)/\(name)" }
    func beside(_ name: String) -> String { "\(folder)/\(name)" }
  }

  let name: String
  /// How often a suite changes: a temporary that has a key's name is one.
  var commits = 1
  var leaves: @Sendable (String) -> [String] = { _ in [] }
  let perform: @Sendable (Job) throws -> Void

  var description: String { name }

  static let all = [
    Save(name: "VS Code: in place") { job in
      try write(job.content, to: job.path, O_WRONLY | O_CREAT | O_TRUNC)
    },
    Save(name: "GFile.replace") { job in
      _ = try OpenFile(job.path, O_RDWR).status()
      try replace(job, by: ".goutputstream-A1B2C3")
    },
    Save(name: "GFile.replace with a backup", leaves: { ["\($0)~"] }) { job in
      let temporary = job.beside(".goutputstream-A1B2C3")
      try write(job.content, to: temporary, O_RDWR | O_CREAT | O_EXCL)
      // A backup is a second name where that can be, else the file is renamed.
      let backup = job.beside("\(job.name)~")
      _ = failure { try System.unlink(backup) }
      #expect(failure { try System.link(job.path, backup) } == .notPermitted)
      try System.rename(job.path, backup)
      try restoring(backup, job.path) { try System.rename(temporary, job.path) }
    },
    Save(name: "JetBrains: safe write") { job in
      let (new, old) = (job.beside("\(job.name)___jb_tmp___"), job.beside("\(job.name)___jb_old___"))
      try write(job.content, to: new, O_WRONLY | O_CREAT | O_TRUNC)
      try System.rename(job.path, old)
      try restoring(old, job.path) { try System.rename(new, job.path) }
      try System.unlink(old)
    },
    Save(name: "a hidden temporary") { job in try replace(job, by: ".\(job.name).tmp") },
    Save(name: "QSaveFile, g_file_set_contents", commits: 2) { job in
      try replace(job, by: "\(job.name).X1Y2Z3")
    },
    Save(name: "O_TMPFILE, which there is none of") { job in
      // O_TMPFILE has another number on each architecture; this is that of x86 and ARM.
      #expect(failure { _ = try OpenFile(job.folder, O_RDWR | 0o20200000) } == .notSupported)
      try replace(job, by: ".\(job.name).tmp")
    },
    Save(name: "a temporary elsewhere") { job in
      let temporary = "\(job.elsewhere)/temporary"
      try write(job.content, to: temporary, O_WRONLY | O_CREAT | O_EXCL)
      defer { _ = failure { try System.unlink(temporary) } }
      #expect(failure { try System.rename(temporary, job.path) } == .crossDevice)
      let copy = try System.read(temporary)
      try write(copy, to: job.path, O_WRONLY | O_TRUNC)
    },
    Save(name: "a temporary elsewhere, moved by name") { job in
      let temporary = "\(job.elsewhere)/temporary"
      try write(job.content, to: temporary, O_WRONLY | O_CREAT | O_EXCL)
      defer { _ = failure { try System.unlink(temporary) } }
      #expect(failure { try System.rename(temporary, job.path) } == .crossDevice)
      // Copied beside the file first, so that it is replaced at once.
      try replace(job, by: ".\(job.name).part")
    },
  ]

  /// Written beside it, with its mode and owner, on the disk, and renamed over.
  private static func replace(_ job: Job, by name: String) throws {
    let temporary = job.beside(name)
    try write(job.content, to: temporary, O_RDWR | O_CREAT | O_EXCL)
    do {
      try System.rename(temporary, job.path)
    } catch {
      try System.unlink(temporary)
      throw error
    }
  }

  private static func write(_ content: [UInt8], to path: String, _ flags: Int32) throws {
    let file = try OpenFile(path, flags, mode: 0o600)
    _ = try System.check { fchmod(file.descriptor, 0o600) }
    _ = try System.check { fchown(file.descriptor, getuid(), getgid()) }
    // In pieces, as from a buffer.
    for start in stride(from: 0, to: content.count, by: 16) {
      try file.write(Array(content[start..<min(start + 16, content.count)]))
    }
    try file.sync()
    try file.close()
  }

  private static func restoring(_ backup: String, _ path: String, _ body: () throws -> Void) throws {
    do {
      try body()
    } catch {
      try System.rename(backup, path)
      throw error
    }
  }
}
