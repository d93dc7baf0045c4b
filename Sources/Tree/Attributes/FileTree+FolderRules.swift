public import Model
public import Store
import Synchronization

// Rules of folders, which hold for the items in them.
extension FileTree {
  /// nil: no rules can be here.
  func ruleScope(at place: Place) throws(StoreError) -> RuleScope? {
    switch place {
    case .keychain: return .keychain
    case .folder(let folder):
      guard let name = try plainFolder(folder) else { throw .notFound }
      return .folder(folder.itemClass, name)
    default: return nil
    }
  }

  /// The scope of rules at a path; nil: no rules can be there.
  public func ruleScope(at path: [String]) throws(StoreError) -> RuleScope? {
    var node = root
    for component in path { node = try child(of: node, named: component.utf8) }
    return try ruleScope(at: node.place)
  }

  /// The rules for a service or a server in which nothing has to be yet; nil: there are none.
  ///
  /// - Throws: `invalidName`, `locked`, `damaged`.
  public func rules(
    forItemsOf itemClass: ItemClass, in folder: String
  ) throws(StoreError) -> ExactString? {
    try rules(at: .folder(FolderPlace(itemClass: itemClass, name: PathName(lookingUp: folder.utf8))))
  }

  func rules(at place: Place) throws(StoreError) -> ExactString? {
    guard let keychain, let scope = try ruleScope(at: place) else { return nil }
    // A keychain that was never unlocked has no attributes, and listing those of its folder must not fail.
    guard keychain.engine.locking.lockState != .sealed else { return nil }
    return try keychain.folderRules().rules(of: scope)
  }

  func setRules(_ rules: ExactString?, at place: Place, _ permit: Permit?) throws(StoreError) {
    guard let scope = try ruleScope(at: place), try self.rules(at: place) != rules else { return }
    try requireKeychain().setRules(rules, of: scope, permit)
  }
}
