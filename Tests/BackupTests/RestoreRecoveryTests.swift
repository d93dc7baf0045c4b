import Formats
import Glibc
import Model
import Testing
import Vault

@testable import Backup

/// A restore over what is there, and one that is interrupted.
@Suite(.timeLimit(.minutes(2))) struct RestoreRecoveryTests {
  /// A backup with the state “old”; the folders have the state “new” since.
  private func fixture() throws -> BackupFixture {
    let fixture = try BackupFixture()
    try fill(fixture)
    return fixture
  }

  private func fill(_ fixture: BackupFixture) throws {
    try Files.write("old", to: fixture.folders.settings + "/one.plist")
    try Files.write("same", to: fixture.folders.settings + "/same.plist")
    try Files.write("gone", to: fixture.folders.settings + "/gone.plist")
    _ = try fixture.engine(fixture.folders)
    try Files.write("old", to: fixture.folders.vault + "/mark")
    try fixture.backUp()
    try Files.write("new", to: fixture.folders.settings + "/one.plist")
    unsafe unlink(fixture.folders.settings + "/gone.plist")
    try Files.write("only new", to: fixture.folders.settings + "/late.plist")
    try Files.write("new", to: fixture.folders.vault + "/mark")
  }

  private func expectRestored(_ fixture: BackupFixture, _ what: String) throws {
    let settings = fixture.folders.settings
    #expect(try Files.text(settings + "/one.plist") == "old", "\(what)")
    #expect(try Files.text(settings + "/same.plist") == "same", "\(what)")
    #expect(try Files.text(settings + "/gone.plist") == "gone", "\(what)")
    #expect(try Files.text(settings + "/late.plist") == "only new", "\(what)")
    #expect(
      Files.names(fixture.folders.vault).filter { !$0.hasPrefix("vault.db-") } == ["vault.db", "vault.key"],
      "\(what)")
    let aside = Files.all(fixture.root + "/a").filter { $0.contains("set-aside") && !$0.contains("vault.") }
    #expect(try aside.map(Files.text) == ["new", "new"], "\(what)")
    #expect(
      Files.all(fixture.root + "/a").allSatisfy { !$0.contains("restoring") && !$0.contains("journal") },
      "\(what)")
  }

  @Test func whatWasThereIsSetAsideAndNamed() throws {
    let fixture = try fixture()
    let report = try fixture.restore(fixture.folders)
    #expect(report.setAside.count == 2 && report.suites == 2)
    for path in report.setAside { #expect(Files.status(exists: path), "\(path)") }
    try expectRestored(fixture, "restored")
  }

  @Test func aSecondRestoreSetsTheFirstOneAside() throws {
    let fixture = try fixture()
    let first = try fixture.restore(fixture.folders)
    let second = try fixture.restore(fixture.folders)
    #expect(second.suites == 0 && second.setAside.count == 1)
    #expect(Set(first.setAside).isDisjoint(with: second.setAside))
    for path in first.setAside + second.setAside { #expect(Files.status(exists: path), "\(path)") }
  }

  @Test func whatIsNotConfirmedIsTakenBack() throws {
    let fixture = try fixture()
    let before = Files.all(fixture.root + "/a")
    #expect(throws: BackupError.self) {
      try Restore(fixture.folders).run(fixture.opened()) { (_) throws(BackupError) in
        throw BackupError(nil, "no")
      }
    }
    #expect(Files.all(fixture.root + "/a") == (before + [fixture.folders.state + "/restore.lock"]).sorted())
  }

  /// The journal and what was prepared, as a process leaves them that is killed before the first move.
  private func interrupted(_ fixture: BackupFixture) throws -> RestoreJournal {
    let places = RestorePlaces(fixture.folders)
    let preparation = RestorePreparation(fixture.folders, places)
    _ = try fixture.opened().read { try preparation.take($0) }
    let file = try locked(fixture)
    let journal = RestoreJournal(.moving, prepared: places.prepared, moves: preparation.moves)
    try file.write(journal)
    let written = try file.read()
    #expect(written == journal)
    return journal
  }

  private func locked(_ fixture: BackupFixture) throws -> RestoreJournalFile {
    guard let file = try RestoreJournalFile(in: fixture.folders.state) else {
      throw BackupError(nil, "another process has the lock")
    }
    return file
  }

  @Test func killedWhilePreparingItIsTakenBack() throws {
    let fixture = try fixture()
    let before = Files.all(fixture.root + "/a")
    let journal = try interrupted(fixture)
    let preparing = RestoreJournal(.preparing, prepared: journal.prepared)
    try locked(fixture).write(preparing)
    guard case .takenBack = RestoreRecovery.run(state: fixture.folders.state) else {
      Issue.record("not taken back")
      return
    }
    #expect(Files.all(fixture.root + "/a") == (before + [fixture.folders.state + "/restore.lock"]).sorted())
  }

  /// The steps of a move: nothing, exchanged, set aside; where names can't be exchanged, set aside and not yet in place.
  enum Step: CaseIterable { case exchanged, done, setAsideFirst }

  private func carryOut(_ move: RestoreMove, _ step: Step) throws {
    guard Files.status(exists: move.place) else {
      return try #require(unsafe rename(move.prepared, move.place) == 0)
    }
    try Files.makeFolder(of: move.aside)
    switch step {
    case .exchanged:
      try Files.exchange(move.prepared, move.place)
    case .done:
      try Files.exchange(move.prepared, move.place)
      try #require(unsafe rename(move.prepared, move.aside) == 0)
    case .setAsideFirst:
      try #require(unsafe rename(move.place, move.aside) == 0)
    }
  }

  @Test func killedAfterAnyMoveItIsFinished() throws {
    let count = try interrupted(fixture()).moves.count
    #expect(count == 3)
    for complete in 0..<count {
      for step in Step.allCases {
        let fixture = try fixture()
        let journal = try interrupted(fixture)
        for move in journal.moves[..<complete] { try carryOut(move, .done) }
        try carryOut(journal.moves[complete], step)
        guard case .finished(let aside) = RestoreRecovery.run(state: fixture.folders.state) else {
          Issue.record("not finished: \(complete) \(step)")
          continue
        }
        #expect(aside.count == 2, "\(complete) \(step)")
        try expectRestored(fixture, "\(complete) \(step)")
        guard case .nothing = RestoreRecovery.run(state: fixture.folders.state) else {
          Issue.record("not at its end: \(complete) \(step)")
          continue
        }
      }
    }
  }

  /// A program has made a vault in the moment in which there was none.
  @Test func whatCameUpMeanwhileIsSetAsideToo() throws {
    let fixture = try fixture()
    let journal = try interrupted(fixture)
    try carryOut(journal.moves[0], .setAsideFirst)
    try Files.write("meanwhile", to: fixture.folders.vault + "/mark")
    guard case .finished(let aside) = RestoreRecovery.run(state: fixture.folders.state) else {
      Issue.record("not finished")
      return
    }
    let marks = Files.all(fixture.root + "/a").filter { $0.hasSuffix("/mark") }
    #expect(try Set(marks.map(Files.text)) == ["new", "meanwhile"] && aside.count >= 2)
  }

  /// A link to a file beside it leads to that file also from the folder of what is set aside.
  @Test func aRelativeLinkThatIsSetAsideStillLeadsThere() throws {
    for isInterrupted in [false, true] {
      let fixture = try fixture()
      let place = fixture.folders.settings + "/one.plist"
      try Files.write("elsewhere", to: fixture.root + "/a/dotfiles/one.plist")
      unsafe unlink(place)
      try #require(unsafe symlink("../dotfiles/one.plist", place) == 0)
      if isInterrupted {
        let journal = try interrupted(fixture)
        let move = try #require(journal.moves.first { $0.place == place })
        // As it was killed between the new link and the removal of the old one.
        try Files.exchange(move.prepared, move.place)
        try Files.makeFolder(of: move.aside)
        try #require(
          unsafe symlink(fixture.folders.settings + "/../dotfiles/one.plist", move.aside) == 0)
        guard case .finished = RestoreRecovery.run(state: fixture.folders.state) else {
          Issue.record("not finished")
          continue
        }
      } else {
        _ = try fixture.restore(fixture.folders)
      }
      #expect(
        try Files.text(place) == "old" && Files.text(fixture.root + "/a/dotfiles/one.plist") == "elsewhere")
      let aside = Files.all(fixture.folders.settings).filter {
        $0.contains("set-aside") && $0.hasSuffix("one.plist")
      }
      #expect(try aside.map(Files.text) == ["elsewhere"])
    }
  }

  /// After the next start of the machine, the disk may have another number.
  @Test(.enabled(if: geteuid() == 0, "needs root: mounts a disk"), arguments: Step.allCases)
  func aDiskWithAnotherNumberIsTheSameAsRoot(step: Step) throws {
    let fixture = try BackupFixture()
    let (place, image) = (fixture.root + "/a", fixture.root + "/image")
    try #require(unsafe mkdir(place, 0o700) == 0)
    defer { Shell.run("umount -l \(place); umount -l \(place)") }
    try #require(Shell.run("truncate -s 16M \(image) && mkfs.ext4 -q \(image)"))
    try #require(Shell.run("mount -o loop \(image) \(place)"))
    try fill(fixture)
    let journal = try interrupted(fixture)
    for move in journal.moves { try carryOut(move, step) }
    let before = try Files.status(place).st_dev
    // A copy of the disk on another device: this process has files of the first one open.
    let isCopied = Shell.run(
      "sync -f \(place) && cp \(image) \(image).copy && mount -o loop \(image).copy \(place)")
    try #require(isCopied)
    try #require(Files.status(place).st_dev != before)
    guard case .finished(let aside) = RestoreRecovery.run(state: fixture.folders.state) else {
      Issue.record("not finished")
      return
    }
    #expect(aside.count == 2)
    unsafe rmdir(place + "/lost+found")
    try expectRestored(fixture, "\(step)")
  }

  @Test func anotherProcessThatPreparesDelaysNothing() throws {
    let fixture = try fixture()
    let journal = try interrupted(fixture)
    let file = try locked(fixture)
    try file.write(RestoreJournal(.preparing, prepared: journal.prepared))
    guard case .nothing = RestoreRecovery.run(state: fixture.folders.state) else {
      Issue.record("it was touched")
      return
    }
    #expect(throws: BackupError.self) { try fixture.restore(fixture.folders) }
    #expect(Files.status(exists: journal.prepared[0]))
    // Held to here.
    file.remove()
  }

  @Test func aJournalIsReadAsItWasWritten() throws {
    for text in [
      "", "x", "keyhole restore 2", "keyhole restore 3\0moving\u{0}0", "keyhole restore 2\0moving\u{0}99",
      "keyhole restore 1\0moving\u{0}0",
    ] {
      #expect(RestoreJournal(text) == nil, "\(text)")
    }
    let journal = try interrupted(fixture())
    #expect(RestoreJournal(journal.text) == journal)
    let parts = journal.text.split(separator: "\0", omittingEmptySubsequences: false)
    for count in 0..<parts.count { _ = RestoreJournal(parts[..<count].joined(separator: "\0")) }
  }
}

private enum Shell {
  /// Whether it ends with 0.
  @discardableResult static func run(_ script: String) -> Bool { unsafe system(script) == 0 }
}

extension Files {
  static func status(exists path: String) -> Bool {
    var status = stat()
    return unsafe lstat(path, &status) == 0
  }

  static func makeFolder(of path: String) throws {
    try write("", to: path + ".x")
    unsafe unlink(path + ".x")
  }

  static func exchange(_ path: String, _ other: String) throws {
    let temporary = path + ".exchange"
    try #require(unsafe rename(path, temporary) == 0)
    try #require(unsafe rename(other, path) == 0)
    try #require(unsafe rename(temporary, other) == 0)
  }
}
