import Platform

/// Which keychain `keychain=auto` has chosen for this user: one word in the file `keychain` of the state folder.
///
/// `auto` keeps it, whatever comes up later: a keychain that changed with the presence of a bus would hide the items
/// of the other one. A mount decides it, and the first item that a command stores; reading never does.
package enum ChosenKeychain {
  private static func file(_ state: String) -> String { state + "/keychain" }

  /// nil: nothing was decided yet.
  package static func fetch(state: String) -> KeychainChoice? {
    let word = readFile(file(state)).split(whereSeparator: \.isWhitespace).first.map(String.init)
    switch word.flatMap(KeychainChoice.init) {
    case .vault?: return .vault
    case .secretService?: return .secretService
    case .automatic?, .cluster?, KeychainChoice.none?, nil: return nil
    }
  }

  /// Records the first choice; a later one changes nothing.
  package static func note(_ choice: KeychainChoice, state: String) {
    write(choice, state: state, .exclusive)
  }

  /// Records what all items were moved to.
  package static func change(to choice: KeychainChoice, state: String) {
    write(choice, state: state, .truncate)
  }

  private static func write(_ choice: KeychainChoice, state: String, _ flag: OpenFlags) {
    UserFolders.make(state)
    guard let file = try? Descriptor(file(state), flag.union([.writing, .create, .noFollow])) else { return }
    try? file.write(Array((choice.rawValue + "\n").utf8))
  }
}
