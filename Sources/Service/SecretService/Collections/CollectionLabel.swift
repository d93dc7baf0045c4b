import Model
import Platform
import SecretServiceProtocol
import Store

/// The label of the collection `login` that a client has given it, of a keychain without sealed documents: one line in the state
/// folder. A vault has the label in its document, and takes over one that is here.
struct CollectionLabel: Sendable {
  private let file: StateText

  /// - Parameter state: the folder of the state.
  init(state: String) { file = StateText(name: "collection-label", state: state) }

  /// nil: none is here.
  var text: String? { file.text }

  /// - Throws: `system`.
  func change(to text: String) throws(StoreError) { try file.change(to: text) }

  /// It is in the vault now. `text`: what was taken over; another one stays.
  func remove(_ text: String) {
    guard file.text == text else { return }
    file.remove()
  }
}

/// The name of the collection that the alias `default` means, where that is not `login`: one line in the state folder.
///
/// It holds for a keychain that was never unlocked, in which the aliases can't be read: a client that reads the alias then, and
/// unlocks, has to store in the same collection as later.
struct DefaultAlias: Sendable {
  /// For an alias that was taken away.
  private static let nothing = "/"

  private let file: StateText

  /// - Parameter state: the folder of the state.
  init(state: String) { file = StateText(name: "default-collection", state: state) }

  /// The aliases of the service, as far as they are known without the keychain.
  var aliases: [String: ServiceObject.Collection] {
    var aliases = ServiceObject.Collection.standardAliases
    // Any program can write the file: items of `session` would be lost, and a name that no collection has means none.
    switch file.text {
    case nil: break
    case Self.nothing?: aliases["default"] = nil
    case let name?:
      if case .further(let further)? = ServiceObject.Collection(name: name) {
        aliases["default"] = .further(further)
      }
    }
    return aliases
  }

  /// Notes the collection; nil: none. Nothing is written where it is noted already, and a failure is no error: the keychain has it.
  func note(_ collection: ServiceObject.Collection?) {
    let name = collection == .login ? nil : collection?.name ?? Self.nothing
    guard name != file.text else { return }
    try? file.change(to: name ?? "")
  }
}

/// A short text in a file of the state folder, which is replaced whole.
private struct StateText {
  private let path: String
  private let folder: String

  init(name: String, state: String) { (path, folder) = ("\(state)/\(name)", state) }

  /// nil: there is none.
  var text: String? {
    let text = readFile(path)
    return text.isEmpty ? nil : text
  }

  func remove() { _ = try? Files.remove(path) }

  /// - Throws: `system`.
  func change(to text: String) throws(StoreError) {
    UserFolders.make(folder)
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
