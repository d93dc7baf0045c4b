import Dispatch
import Glibc
import Platform
import Synchronization
import Testing

@testable import Fuse

/// A file system mounted in a private folder, for as long as a test's body runs.
///
/// The mount ends with the body in any case, and a body that hangs is freed after twenty seconds, by
/// cutting the connection.
@discardableResult
func withMount<Result>(
  _ fileSystem: any FileSystem, threads: Int = 3, _ body: (String, Session) throws -> Result
) throws -> Result {
  let path = try temporaryFolder()
  defer { unsafe rmdir(path) }
  let session = try Session(fileSystem, options: ["fsname=fusetests", "nosuid", "nodev"])
  let isReady = Event()
  try session.mount(at: path, onReady: { isReady.happen() })
  let ended = Event()
  ThreadID.start {
    try? session.run(threads: threads)
    ended.happen()
  }
  let finished = Event()
  ThreadID.start { if !finished.waits(seconds: 20) { cut(path) } }
  defer {
    session.unmount()
    finished.happen()
    if !ended.wait() { Issue.record("the run did not end") }
    cut(path)
  }
  guard isReady.wait() else { throw MountFailure.notReady }
  return try body(path, session)
}

enum MountFailure: Error {
  case noFolder
  case notReady
}

func temporaryFolder() throws -> String {
  let folder = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
  var template = Array("\(folder)/fusetests.XXXXXX".utf8CString)
  guard unsafe mkdtemp(&template) != nil else { throw MountFailure.noFolder }
  return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// Whether something is mounted there: it is another device than the folder above, or does not answer.
func isMounted(_ path: String) -> Bool {
  var inner = stat()
  var outer = stat()
  if unsafe stat(path, &inner) != 0 { return errno != ENOENT }
  return unsafe stat(path + "/..", &outer) != 0 || inner.st_dev != outer.st_dev
}

private func cut(_ path: String) {
  while isMounted(path), detach(path) {}
}

/// Takes a mount away whatever uses it; false: it could not be taken away.
func detach(_ path: String) -> Bool {
  if unsafe umount2(path, Int32(MNT_FORCE | MNT_DETACH)) == 0 { return true }
  // Without CAP_SYS_ADMIN.
  var process: pid_t = 0
  var status: Int32 = 0
  let arguments = ["fusermount3", "-u", "-q", "-z", "--", path]
  var pointers = unsafe arguments.map { unsafe strdup($0) } + [nil]
  defer { unsafe pointers.forEach { unsafe free($0) } }
  // SAFETY: the vector ends with nil, and its strings live until the end of the function.
  guard unsafe posix_spawnp(&process, arguments[0], nil, nil, &pointers, environ) == 0 else { return false }
  while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
  return status == 0
}

extension Event {
  fileprivate func waits(seconds: Int) -> Bool { wait(until: .now() + .seconds(seconds)) }
}
