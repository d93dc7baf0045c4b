package import Model
package import SecretMemory
package import Store

/// The operations of a mount's process for requests on its control socket.
package protocol ControlService: Sendable {
  /// nil: the mount has none.
  var keychain: KeychainStore? { get }
  var isReadOnly: Bool { get }
  /// The settings, where only this process reaches them; nil, as by default: every process reads them by itself.
  var settings: SettingsStore? { get }
  /// The mount is gone: that it locks its keychain now is not reported as a lock.
  var isEnding: Bool { get }

  /// One JSON object, as in `.keyhole/status`; empty, as by default: there is none but that.
  var status: String { get }

  /// Locks the keychain. It is called on a thread of its own.
  func lock() throws(StoreError)

  /// Unlocks the keychain; one call at a time, on a thread of its own. It may take long.
  func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError)

  /// The one-time code of an item whose second secret the permit is for; a counter is advanced where the mount may be changed.
  func oneTimeCode(of item: Item, _ permit: Permit) throws(StoreError) -> OneTimeCode

  /// The path of an item in the tree; nil: there is no such item.
  func path(of item: ItemID) throws(StoreError) -> String?

  /// The path that an item with this identity has in the tree.
  func path(of identity: ItemIdentity) -> String

  /// The path in the tree of a folder that has rules.
  func path(of scope: RuleScope) -> String

  /// The folder with rules that a path leads to. - Throws: `notFound`.
  func scope(at path: String) throws(StoreError) -> RuleScope

  /// Has the process do nothing in its own tree, and calls `done` when that is so.
  func pauseReplay(_ done: @escaping @Sendable () -> Void)
  func resumeReplay()

  /// Looks at the keychain and at these suites again, and calls `done` when the mount shows what was found. By default there is no mount.
  func catchUp(with suites: [ExactString], _ done: @escaping @Sendable () -> Void)

  /// A request has been answered, which needed code and memory that the mount itself rarely needs.
  func requestDidEnd()
}

extension ControlService {
  package var isEnding: Bool { false }
  package var status: String { "" }
  package var settings: SettingsStore? { nil }
  package func requestDidEnd() {}
  package func catchUp(with suites: [ExactString], _ done: @escaping @Sendable () -> Void) { done() }
}
