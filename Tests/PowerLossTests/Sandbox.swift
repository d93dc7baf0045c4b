import Glibc
import LossyFileSystem

/// A private folder, gone with the value.
final class Sandbox: Sendable {
  let root: String

  init() throws(Failure) {
    let folder = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
    var template = Array("\(folder)/keyhole-power.XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else { throw Failure("mkdtemp below \(folder)") }
    root = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit { removeAll(root) }

  /// A new empty folder.
  func folder(_ name: String) throws(Failure) -> String {
    let path = root + "/" + name
    guard unsafe mkdir(path, 0o700) == 0 else { throw Failure("mkdir \(path)") }
    return path
  }
}

/// A failure of the tests themselves.
struct Failure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}

/// rm -r that goes into no other file system.
private func removeAll(_ path: String) {
  var (status, parent) = (stat(), stat())
  guard unsafe lstat(path, &status) == 0 else { return }
  guard status.st_mode & S_IFMT == S_IFDIR else { return _ = unsafe unlink(path) }
  guard unsafe stat(path + "/..", &parent) == 0, parent.st_dev == status.st_dev else { return }
  for name in names(in: path) { removeAll(path + "/" + name) }
  unsafe rmdir(path)
}

private func names(in path: String) -> [String] {
  guard let folder = unsafe opendir(path) else { return [] }
  defer { unsafe closedir(folder) }
  var names: [String] = []
  while let entry = unsafe readdir(folder) {
    // SAFETY: readdir(3) gives a name that ends with NUL, there until the next call.
    let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) {
      unsafe String(cString: UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self))
    }
    if name != ".", name != ".." { names.append(name) }
  }
  return names
}

/// Runs `body` on a mounted lossy disk, which is unmounted afterwards, whatever happens.
func withMount<Result>(
  _ disk: LossyDisk, cuts: PowerCuts, body: (LossyMount) throws -> Result
) throws -> Result {
  let sandbox = try Sandbox()
  let mount = try LossyMount(disk, at: sandbox.folder("disk"), cuts: cuts)
  defer { mount.close() }
  return try body(mount)
}

/// Runs `body` on a real folder with what a power loss left of a disk.
func withSurvivor<Result>(
  of disk: LossyDisk, _ survival: Survival, body: (String) throws -> Result
) throws -> Result {
  let sandbox = try Sandbox()
  try disk.survivor(survival).materialize(at: sandbox.root)
  return try body(sandbox.root)
}
