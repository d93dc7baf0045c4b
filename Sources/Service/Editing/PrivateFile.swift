import Model
package import SecretMemory
import Store
import Tree

/// A file of a `PrivateFolder`.
package struct PrivateFile {
  package let path: String
  let name: String
  let folder: Node
  let tree: FileTree

  package func write(_ bytes: Span<UInt8>) throws {
    do throws(StoreError) {
      let handle = try tree.create(
        name.utf8, in: folder, [.write, .truncate], exclusive: false, by: .current)
      defer { handle.close() }
      try handle.write(bytes, at: 0, by: .current)
    } catch {
      throw Failure(path, error)
    }
  }

  /// Whether it has its name.
  package var isThere: Bool { (try? tree.child(of: folder, named: name.utf8)) != nil }

  /// The content of the file now; empty if the program did not make it, or the folder was sealed.
  package func read() throws -> SecretBytes {
    var copy = try SecretBytes()
    do throws(StoreError) {
      let node = try tree.child(of: folder, named: name.utf8)
      let handle = try tree.open(node, .read, by: .current)
      defer { handle.close() }
      var failure: SecretMemoryError?
      try handle.read(at: 0, count: .max) { bytes in
        do throws(SecretMemoryError) { try copy.append(bytes) } catch { failure = error }
      }
      if failure != nil { throw .outOfMemory }
    } catch {
      guard error != .notFound else { return try SecretBytes() }
      throw Failure(path, error)
    }
    return copy
  }
}
