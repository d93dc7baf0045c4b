import Model
import Platform
import Store
import Testing

@testable import Service

/// The problems and notes that doctor derives from files of proc(5) and limits.
@Suite struct SystemChecksTests {
  @Test func lowLimitOfInotifyIsAProblem() {
    let problems = SystemLimits.inotify { $0.hasSuffix("max_user_watches") ? "8\n" : "128\n" }
    #expect(problems.map(\.subject) == ["/proc/sys/fs/inotify/max_user_watches"])
    #expect(problems.map(\.remedy) == ["`sudo sysctl fs.inotify.max_user_watches=1024`"])
  }

  @Test(arguments: ["65536\n", "", "nonsense\n"])
  func otherTextIsNone(text: String) {
    #expect(SystemLimits.inotify { _ in text }.isEmpty)
  }

  /// Processes of Keyhole raise their limit to the hard one.
  @Test func lowLimitOfLockedMemorySaysWhatRaisesIt() {
    #expect(SystemLimits.memory(ResourceLimit.Values(current: 64 * 1024, highest: 16 << 20)).isEmpty)
    let hard = SystemLimits.memory(ResourceLimit.Values(current: 64 * 1024, highest: 64 * 1024))
    #expect(hard.map(\.reason) == ["64 KiB of memory may be locked, and a large secret takes more"])
    #expect(hard.count == 1 && hard[0].remedy.hasPrefix("`sudo prlimit --pid $$ --memlock=8388608`"))
    #expect(SystemLimits.memory(ResourceLimit.Values(current: 1 << 20, highest: 1 << 20)).isEmpty)
  }

  /// Below a mount the vault can't be shown before `keyhole unmount`.
  @Test func serviceThatDoesNotAnswerNamesWhatShowsTheVault() {
    let mounted = SystemChecks.unreachableService("it does not answer", isMounted: true)
    #expect(mounted.reason == "the mount shows it, and it can't be used from here: it does not answer")
    #expect(mounted.remedy.contains("`keyhole unmount`, then `keyhole mount -o keychain=vault`"))
    // The service may be well, and another bus be asked.
    #expect(!mounted.remedy.contains("--keep"))
    let chosen = SystemChecks.unreachableService("it does not answer", isMounted: false)
    #expect(chosen.reason.hasPrefix("`keychain=auto` has chosen it first"))
    #expect(!chosen.remedy.contains("unmount"))
  }

  /// Outside of the home folder, the mount may have been one of other stores.
  @Test(arguments: [
    ("/home/u/Keyhole", "`keyhole mount /home/u/Keyhole`"),
    ("/home/u2/Keyhole", "`keyhole unmount /home/u2/Keyhole`"),
    ("/mnt/a b", "`keyhole unmount '/mnt/a b'`"),
  ])
  func deadMountIsMountedAgainOnlyInTheHomeFolder(path: String, command: String) {
    let places = StoragePaths(
      home: "/home/u", configuration: "/c", vault: "/v", state: "/s", runtime: "/r")
    #expect(SystemChecks.remedy(ofDead: path, places).hasPrefix(command))
  }

  @Test func rightsThatAreMissingAreGivenByTheirOwner() {
    func remedy(_ rights: Files.Rights, _ kind: StoreRights.Kind, owner: UInt32) -> String {
      StoreRights.problem(of: "/v/a b", rights, kind, owner: owner, user: 7).remedy
    }
    #expect(remedy([.read, .write], .file, owner: 7) == "`chmod u+rw '/v/a b'`")
    #expect(remedy(.read, .file, owner: 7) == "`chmod u+r '/v/a b'`")
    #expect(remedy(.read, .ownFolder, owner: 7) == "`chmod u+rwx '/v/a b'`")
    #expect(remedy(.read, .ownFolder, owner: 0) == "`sudo chown -R $(id -u) '/v/a b'`")
    #expect(remedy(.read, .sharedFolder, owner: 0) == "`sudo chown $(id -u) '/v/a b'`")
    #expect(remedy(.read, .file, owner: 0) == "`sudo chown $(id -u) '/v/a b'`")
    // Another user's folder is not to be taken over, nor one above that is root's.
    for kind in [StoreRights.Kind.file, .ownFolder, .sharedFolder, .parent] {
      #expect(!remedy(.read, kind, owner: 8).contains("sudo"))
    }
    #expect(!remedy(.execute, .parent, owner: 0).contains("sudo"))
    let missing = { (owner: UInt32) in
      StoreRights.missing("/v/a b", in: "/v", .EACCES, owner: owner, user: 7).remedy
    }
    #expect(missing(7) == "`chmod u+rwx /v`")
    #expect(missing(0).contains("sudo install -d -m 700 -o $(id -u) '/v/a b'"))
    #expect(!missing(8).contains("sudo"))
  }

  /// A backup does not repair a wrong passphrase or a disk.
  @Test(arguments: [StoreError.rejected, .locked, .system(.EIO, operation: "read /v/vault.db")])
  func vaultThatIsNotDamagedNeedsNoBackup(error: StoreError) {
    #expect(!VaultExamination.remedy(error).contains("backup"))
    #expect(!VaultExamination.reason(error).contains("keyhole doctor"))
  }

  @Test func damageIsNamedOnce() {
    let error = StoreError.damaged(what: "/v/vault.db (it is empty)")
    #expect(VaultExamination.reason(error) == "/v/vault.db (it is empty) is damaged")
    #expect(VaultExamination.remedy(error).contains("from a backup"))
  }

  private static let limits = """
    Limit                     Soft Limit           Hard Limit           Units
    Max file size             unlimited            unlimited            bytes
    Max core file size        LIMIT                unlimited            bytes

    """

  @Test(arguments: [
    ("unlimited", "core", 1), ("1024", "|/usr/bin/handler", 1), ("0", "core", 0), ("1024", "", 0),
  ])
  func coreFileOfTheCallerIsNoted(limit: String, pattern: String, count: Int) {
    let notes = SystemNotes.cores(limits: Self.limits.replacing("LIMIT", with: limit), pattern: pattern)
    #expect(notes.count == count)
  }

  @Test func textWithoutTheLimitIsNoNote() {
    #expect(SystemNotes.cores(limits: "", pattern: "core").isEmpty)
  }

  @Test func swapThatNothingEncryptsIsNoted() {
    let table = """
      Filename        Type        Size    Used    Priority
      /dev/dm-0       partition   1000    0       -2
      /swap.img       file        1000    0       -3

      """
    let notes = SystemNotes.swaps(table) { $0 == "/dev/dm-0" }
    #expect(notes.map(\.subject) == ["/swap.img"])
    #expect(notes[0].remedy.hasPrefix("`sudo swapoff /swap.img`"))
    #expect(SystemNotes.swaps("", isHarmless: { _ in false }).isEmpty)
  }
}
