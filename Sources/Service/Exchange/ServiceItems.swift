import KeychainSelection
import Model

/// Items of a Secret Service, which are in no backup.
package struct ServiceItems {
  /// Whether it is the user's keychain; nil: none was chosen yet.
  private let isChosen: Bool?
  private let count: Int?

  package init(_ places: StoragePaths) {
    let opening = KeychainConfiguration.present(runtime: places.runtime)
    let choice = opening.choice == .automatic ? ChosenKeychain.fetch(state: places.state) : opening.choice
    let isChosen = choice.map { $0 == .secretService }
    guard isChosen ?? true else {
      self.init(isChosen: isChosen, count: nil)
      return
    }
    let hidden = HiddenItems.beside(
      KeychainChoice.vault.rawValue, vault: places.vault, state: places.state, patience: 1_000)
    self.init(isChosen: isChosen, count: hidden?.count)
  }

  init(isChosen: Bool?, count: Int?) {
    (self.isChosen, self.count) = (isChosen, count)
  }

  /// - Throws: `Failure` where a backup would not hold the user's secrets.
  package func requireNone() throws {
    guard isChosen == true else { return }
    throw Failure(
      "Secret Service",
      "it is the keychain, and \(items) not in a backup: `keyhole export keychain` writes them. Nothing was "
        + "written; --without-secret-service backs up the settings and the vault")
  }

  /// One line about a backup that was written; nil: there are no such items.
  package var note: String? {
    guard isChosen == true || count != nil else { return nil }
    return "the Secret Service: \(items) not in the backup; `keyhole export keychain` writes them"
  }

  private var items: String {
    switch count {
    case nil: "its items are"
    case 1?: "its 1 item is"
    case let count?: "its \(count) items are"
    }
  }
}
