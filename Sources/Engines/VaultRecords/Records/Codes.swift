import Model

// The numbers by which the format spells Model's names. They never change.

extension Accessibility {
  package var code: UInt8 {
    switch self {
    case .whenUnlocked: 1
    case .afterFirstUnlock: 2
    case .whenUnlockedThisDeviceOnly: 3
    case .afterFirstUnlockThisDeviceOnly: 4
    case .whenPasscodeSetThisDeviceOnly: 5
    }
  }

  package init?(code: UInt8) {
    guard let match = Self.allCases.first(where: { $0.code == code }) else { return nil }
    self = match
  }

  /// Its secrets can be read on this device only: their class key is bound to the device key too.
  package var isBoundToDevice: Bool {
    switch self {
    case .whenUnlocked, .afterFirstUnlock: false
    case .whenUnlockedThisDeviceOnly, .afterFirstUnlockThisDeviceOnly, .whenPasscodeSetThisDeviceOnly:
      true
    }
  }
}

extension AccessFlags.Flag {
  package var code: UInt8 {
    switch self {
    case .userPresence: 1
    case .biometryAny: 2
    case .biometryCurrentSet: 3
    case .devicePasscode: 4
    case .applicationPassword: 5
    case .or: 6
    case .and: 7
    }
  }

  init?(code: UInt8) {
    guard let match = Self.allCases.first(where: { $0.code == code }) else { return nil }
    self = match
  }
}
