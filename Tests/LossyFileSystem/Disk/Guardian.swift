import Glibc
import Synchronization

/// A shell that waits for this process to end, however it ends, and then takes a mount away.
package final class Guardian: Sendable {
  private let process: pid_t
  /// The shell sees it closed when this process is gone.
  private let pipeEnd: Int32
  private let isDismissed = Atomic(false)

  private static let script =
    "trap '' INT TERM HUP; read -r _; umount -l -- \"$1\" || fusermount3 -u -z -- \"$1\""

  package init(of mount: String) throws(LossyDiskError) {
    var ends: [Int32] = [0, 0]
    guard unsafe pipe(&ends) == 0 else { throw LossyDiskError(path: mount, errno: errno) }
    defer { close(ends[0]) }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    pipeEnd = ends[1]
    process = try Self.spawn(["/bin/sh", "-c", Self.script, "guardian", mount], input: ends[0])
  }

  /// The mount is gone already.
  package func dismiss() {
    guard !isDismissed.exchange(true, ordering: .acquiringAndReleasing) else { return }
    kill(process, SIGKILL)
    var status: Int32 = 0
    while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
    close(pipeEnd)
  }

  private static func spawn(_ arguments: [String], input: Int32) throws(LossyDiskError) -> pid_t {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_adddup2(&actions, input, 0)
    for stream in Int32(1)...2 {
      unsafe posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_WRONLY, 0)
    }
    // A group of its own: Ctrl-C is for the tests.
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
    var words = unsafe arguments.map { unsafe strdup($0) } + [nil]
    defer { unsafe words.forEach { unsafe free($0) } }
    var process: pid_t = 0
    let code = unsafe posix_spawn(&process, arguments[0], &actions, &attributes, &words, environ)
    guard code == 0 else { throw LossyDiskError(path: arguments[0], errno: code) }
    return process
  }
}
