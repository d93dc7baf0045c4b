import KeychainSelection
import Model
import Platform
import Prompting
import Store
import Tree

/// Items whose flags can't be met here, and rules that mean something else than in Keyhole 0.1.
enum AccessNotes {
  /// Looking must not make a vault.
  static func all(_ places: StoragePaths) -> [Note] {
    guard Files.exists(places.vault),
      let stores = try? Stores(for: TreePath("keychain"), places), let keychain = stores.keychain,
      let items = try? keychain.read({ Array($0.all) })
    else { return [] }
    let factors = ApprovalFactors.ofMachine(keychain)
    let upgrade = upgrade(places)
    return unchangeable(keychain, items, places)
      + items.flatMap { item in
        let path = FileTree.path(of: item.identity)
        return [unmet(item, path, factors), changed(item, path, keychain, upgrade)].compactMap { $0 }
      }
  }

  /// The note on rules that their user can't change here.
  private static func unchangeable(
    _ keychain: KeychainStore, _ items: [Item], _ places: StoragePaths
  ) -> [Note] {
    let hasRules = items.contains { $0.programs != nil } || (try? keychain.hasFolderRules) == true
    guard hasRules, let obstacle = RuleChange.obstacle(keychain) else { return [] }
    return [
      Note(
        subject: places.vault,
        reason: "you can't agree here to a change of its rules for programs, as \(obstacle.reason)",
        remedy: obstacle.remedy)
    ]
  }

  private static func unmet(_ item: Item, _ path: String, _ factors: ApprovalFactors) -> Note? {
    do throws(StoreError) {
      try item.access.requireSatisfiable(with: factors)
      return nil
    } catch {
      guard case .unsupported(let why) = error else { return nil }
      let parts = why.split(separator: "; ", maxSplits: 1).map(String.init)
      return Note(
        subject: path, reason: "its secret can't be opened here: \(parts.first ?? "")",
        remedy: parts.count > 1 ? parts[1] : "`keyhole passphrase` sets a passphrase")
    }
  }

  /// When the vault was upgraded from Keyhole 0.1, by the copy that was made of it before; nil: it was not, or the copy was removed.
  private static func upgrade(_ places: StoragePaths) -> SystemTime? {
    (try? Files.status(places.vault + "/vault-1.db"))?.modified
  }

  /// Of an item that had its rules in Keyhole 0.1 already.
  private static func changed(
    _ item: Item, _ path: String, _ keychain: KeychainStore, _ upgrade: SystemTime?
  ) -> Note? {
    guard let upgrade, item.created.seconds <= upgrade.seconds,
      (try? keychain.asksByListOfAllowed(item)) == true
    else { return nil }
    return Note(
      subject: path,
      reason:
        "its rules allow some programs and say nothing of the others, which had its secret in Keyhole 0.1 and "
        + "are asked about now",
      remedy:
        "`ask *`, `deny *` or `allow *` as the last line of `user.keyhole.programs` says which it is to be")
  }
}
