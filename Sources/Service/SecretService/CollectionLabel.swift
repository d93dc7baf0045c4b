import Model
import Platform
import Store

/// The name of the collection `login`, which clients may change: one line in the state folder.
struct CollectionLabel: Sendable {
  private static let standard = "Login"
  /// In bytes.
  private static let longest = 1024

  private let path: String
  private let state: String

  /// - Parameter state: the folder of the state.
  init(state: String) {
    (path, self.state) = (state + "/collection-label", state)
  }

  /// The present name.
  var text: String {
    let text = readFile(path)
    return text.isEmpty ? Self.standard : text
  }

  /// - Throws: `invalidValue` for a text that is too long; `system`.
  func change(to text: String) throws(StoreError) {
    guard text.utf8.count <= Self.longest else {
      throw .invalidValue(reason: "the name of a collection has at most \(Self.longest) bytes")
    }
    UserFolders.make(state)
    let temporary = path + ".new"
    do throws(Errno) {
      _ = try? Files.remove(temporary)
      try Descriptor(temporary, [.writing, .create, .exclusive, .noFollow]).write(Array(text.utf8))
      try Files.rename(temporary, to: path)
    } catch {
      throw .system(error, operation: "rename")
    }
  }
}
