public import Model

extension Accessibility {
  /// The class that is open only when both are, and on one device only if one of them is.
  public func stricter(_ other: Accessibility) -> Accessibility {
    if self == other { return self }
    if self == .whenPasscodeSetThisDeviceOnly || other == .whenPasscodeSetThisDeviceOnly {
      return .whenPasscodeSetThisDeviceOnly
    }
    let survivesLock = survivesLock && other.survivesLock
    guard isThisDeviceOnly || other.isThisDeviceOnly else {
      return survivesLock ? .afterFirstUnlock : .whenUnlocked
    }
    return survivesLock ? .afterFirstUnlockThisDeviceOnly : .whenUnlockedThisDeviceOnly
  }

  private var isThisDeviceOnly: Bool {
    switch self {
    case .whenUnlocked, .afterFirstUnlock: false
    case .whenUnlockedThisDeviceOnly, .afterFirstUnlockThisDeviceOnly, .whenPasscodeSetThisDeviceOnly: true
    }
  }
}

extension AccessFlags {
  /// Flags that demand what both demand; nil: flags can't say that, because one of them has an `or`.
  public func joined(with other: AccessFlags) -> AccessFlags? {
    let (first, second) = (constraints, other.constraints)
    let password: [Flag] = needsPassword || other.needsPassword ? [.applicationPassword] : []
    if first.isEmpty || Set(first) == Set(second) { return AccessFlags(second + password) }
    if second.isEmpty { return AccessFlags(first + password) }
    guard !first.contains(.or), !second.contains(.or) else { return nil }
    // Constraints that neither word joins all have to be met.
    return AccessFlags((first + second.filter { !first.contains($0) }).filter { $0 != .and } + password)
  }

  /// The flags but for the item's own password, which is one more lock.
  private var constraints: [Flag] { flags.filter { $0 != .applicationPassword } }
}

extension Item {
  /// The item as `version` has it, protected by what protects either: the stricter class, the flags of both. Where both have
  /// rules for programs, they are this item's. Name, id and what is kept of the item stay this item's.
  ///
  /// - Throws: `accessDenied` where the flags of both can't be joined.
  public func restoring(_ version: Item) throws(StoreError) -> Item {
    guard let access = version.access.joined(with: access) else {
      throw .accessDenied(
        reason:
          "its flags were `\(version.access.text)` and are `\(self.access.text)`, which can't be joined; "
          + "give the item the flags that it had, then restore it")
    }
    var item = version
    (item.id, item.identity, item.access) = (id, identity, access)
    item.accessibility = accessibility.stricter(version.accessibility)
    item.programs = programs ?? version.programs
    for name in [Self.historyAttribute, FingerprintEnrollment.attribute] {
      item.attributes[name] =
        attributes[name] ?? (name == Self.historyAttribute ? nil : version.attributes[name])
    }
    if identity.isDocument { item.attributes[SealedDocument.links] = attributes[SealedDocument.links] }
    return item
  }
}
