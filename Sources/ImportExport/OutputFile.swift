import Model
import Platform

/// A file that gets its name when it is complete, and takes the place of another one then.
///
/// Until then it has none (O_TMPFILE), so that a process that is killed leaves nothing. On file systems without such
/// files it has a name of its own, which a process that is killed leaves behind: `FILE.PID.part`.
package struct OutputFile: ~Copyable {
  private let path: String
  private let temporary: String
  private var hasName: Bool
  private let file: Descriptor

  /// Where the content goes.
  package var descriptor: Int32 { file.number }

  /// - Throws: `Failure`.
  package init(_ path: String) throws {
    self.path = path
    temporary = "\(path).\(CurrentProcess.number).part"
    let unnamed = try? Descriptor(unnamedIn: Files.folder(of: path))
    hasName = unnamed == nil
    do throws(Errno) { file = try Self.file(unnamed, temporary) } catch { throw Self.failure(path, error) }
  }

  private static func file(
    _ unnamed: consuming Descriptor?, _ temporary: String
  ) throws(Errno) -> Descriptor {
    switch consume unnamed {
    case .some(let file): file
    case .none: try Descriptor(temporary, [.writing, .create, .exclusive, .noFollow])
    }
  }

  deinit {
    if hasName { _ = try? Files.remove(temporary) }
  }

  /// Returns when the file is on the disk and has its name. - Throws: `Failure`.
  package mutating func finish() throws {
    do throws(Errno) {
      // EINVAL: a file system without fsync(2).
      do throws(Errno) { try file.synchronize() } catch { if error != .EINVAL { throw error } }
      if !hasName { try giveTemporaryName() }
      try Files.rename(temporary, to: path)
      hasName = false
    } catch {
      throw Self.failure(path, error)
    }
  }

  /// Only rename(2) takes another file's place, and it takes a name.
  private mutating func giveTemporaryName() throws(Errno) {
    _ = try? Files.remove(temporary)
    try file.giveName(temporary)
    hasName = true
  }

  private static func failure(_ path: String, _ error: Errno) -> Failure {
    Failure(path, "it can't be written: \(error)")
  }
}
