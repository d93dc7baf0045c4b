import Glibc
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

  /// A shell can raise its limit to the hard one only.
  @Test func lowLimitOfLockedMemorySaysWhatRaisesIt() {
    let soft = SystemLimits.memory(rlimit(rlim_cur: 64 * 1024, rlim_max: 16 << 20))
    #expect(
      soft.map(\.remedy) == ["`ulimit -l 8192` in this shell, or `LimitMEMLOCK=8M` in a service's unit"])
    #expect(soft.map(\.reason) == ["64 KiB may be locked, and the kernel has no memory for secrets"])
    let hard = SystemLimits.memory(rlimit(rlim_cur: 64 * 1024, rlim_max: 64 * 1024))
    #expect(hard.count == 1 && hard[0].remedy.hasPrefix("`sudo prlimit --pid $$ --memlock=8388608`"))
    #expect(SystemLimits.memory(rlimit(rlim_cur: 1 << 20, rlim_max: 1 << 20)).isEmpty)
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
