import Glibc
import Keychains
import Model
import SecretMemory
import Tree

/// A secret of the tree as a file of the running mount: the way to a vault that only the mount has unlocked.
struct MountedFile {
  private let mount: String
  private let path: TreePath

  /// nil: nothing is mounted.
  init?(_ path: TreePath, _ places: Places) {
    guard let mount = MountRecord.all(in: places.runtime).last(where: \.isAlive) else { return nil }
    (self.mount, self.path) = (mount.path, path)
  }

  private var file: String { "\(mount)/\(path.string)" }

  /// - Throws: `Failure` that names the path.
  func read() throws -> SecretBytes {
    // SAFETY: a variadic call without its variable part.
    let descriptor = unsafe open(file, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure(errno) }
    defer { close(descriptor) }
    return try SecretInput.read(descriptor: descriptor, limit: Tree.secretLimit)
  }

  /// Replaces the content, and makes the folders on the way. - Throws: `Failure` that names the path.
  func write(_ bytes: UnsafeRawBufferPointer) throws {
    try makeFolders()
    // SAFETY: a variadic call with its one argument.
    let descriptor = unsafe open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure(errno) }
    do {
      try unsafe write(bytes, to: descriptor)
    } catch {
      close(descriptor)
      throw error
    }
    guard close(descriptor) == 0 else { throw failure(errno) }
  }

  private func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) throws {
    var chunk = try SecretBytes(pinnable: 64 * 1024)
    var rest = unsafe bytes[...]
    while unsafe !rest.isEmpty {
      let piece = unsafe UnsafeRawBufferPointer(rebasing: rest.prefix(chunk.count))
      let count = unsafe chunk.withUnsafeMutableBytes { chunk in
        unsafe chunk.copyMemory(from: piece)
        // SAFETY: no more than the chunk holds.
        return unsafe Glibc.write(descriptor, chunk.baseAddress, piece.count)
      }
      guard count > 0 else { throw failure(errno) }
      unsafe rest = unsafe rest.dropFirst(count)
    }
  }

  private func makeFolders() throws {
    var folder = mount
    for component in path.components.dropLast() {
      folder += "/" + component
      guard unsafe mkdir(folder, 0o700) == 0 || errno == EEXIST else { throw failure(errno) }
    }
  }

  private func failure(_ error: Int32) -> Failure {
    error == ENOKEY ? Failure(path.string, StoreError.locked) : Failure(path.string, systemMessage(error))
  }
}
