public import Model

/// The items that a keychain can't keep, whatever its state.
public struct KeychainLimits: Hashable, Sendable {
  /// The classes of items that it refuses.
  public var refusedClasses: Set<Accessibility>
  /// The access flags that it refuses.
  public var refusedFlags: Set<AccessFlags.Flag>

  /// By default nothing is refused.
  public init(refusedClasses: Set<Accessibility> = [], refusedFlags: Set<AccessFlags.Flag> = []) {
    (self.refusedClasses, self.refusedFlags) = (refusedClasses, refusedFlags)
  }

  /// - Throws: `unsupported` for an item that the keychain can't keep.
  public func check(_ item: Item) throws(StoreError) {
    if refusedClasses.contains(item.accessibility) {
      throw .unsupported(
        reason: "this keychain is not on this device alone, so it keeps no items of the class "
          + item.accessibility.rawValue)
    }
    if let flag = item.access.flags.first(where: refusedFlags.contains) {
      throw .unsupported(reason: "this keychain keeps no items with the flag \(flag.rawValue)")
    }
  }
}
