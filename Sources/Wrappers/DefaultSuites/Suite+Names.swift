public import Foundation
public import Live

extension Suite {
  /// The suite of that name, in the storage that is current.
  public init(_ name: String) {
    self.init(name, in: .chosen)
  }

  /// The suite of that name in a storage.
  public init(_ name: String, in storage: SuiteStorage) {
    self.init(storage.live.suite(name))
  }

  /// The suite that Foundation's `UserDefaults.standard` names: by the bundle's identifier, else by the
  /// program.
  public static var standard: Suite { Suite(standardName) }

  /// The suite that Foundation's object stands for.
  public init(_ defaults: UserDefaults) {
    if let own = (defaults as? SettingDefaults)?.suite {
      self = own
    } else {
      self.init(defaults.suiteName ?? Self.standardName)
    }
  }

  private static let standardName = Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName
}

extension UserDefaults {
  /// The name that it was made with, which Foundation keeps and does not show; nil: `standard`.
  fileprivate var suiteName: String? {
    Mirror(reflecting: self).children.first { $0.label == "suite" }?.value as? String
  }
}
