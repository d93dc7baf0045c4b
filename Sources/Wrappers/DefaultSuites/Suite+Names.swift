public import Foundation
public import WrapperCore

extension Suite {
  /// The suite of that name, in `SuiteStorage.current`, else in the storage of the process.
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

  /// The suite that Foundation's object names.
  public init(_ defaults: UserDefaults) {
    if let own = (defaults as? SettingDefaults)?.suite {
      self = own
    } else {
      self.init(FoundationSuite(defaults), of: defaults)
    }
  }

  init(_ foundation: FoundationSuite, of defaults: UserDefaults) {
    switch foundation {
    case .named(let name): self.init(name)
    case .standard: self.init(Self.standardName)
    case .unknown where defaults === UserDefaults.standard: self.init(Self.standardName)
    case .unknown:
      _ = Self.noteOnce
      self.init("\(UInt(bitPattern: ObjectIdentifier(defaults)))", in: Self.nameless)
    }
  }

  /// Settings of an object without a name must not be mixed with the program's own.
  private static let nameless = SuiteStorage.memory()

  private static let noteOnce: Void = Log.note(
    "settings",
    "this version of Foundation does not tell which suite a UserDefaults stands for: what is set there is kept in memory"
      + " only. Use Suite(\"NAME\") in its place, and report this")

  private static let standardName = Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName
}

/// The suite that an object of Foundation names.
enum FoundationSuite: Equatable {
  case standard
  case named(String)
  /// Foundation keeps the name elsewhere than it did.
  case unknown

  /// Foundation on Linux keeps the name that an object was made with in a private property, and shows it nowhere.
  init(_ defaults: UserDefaults) {
    var mirror: Mirror? = Mirror(reflecting: defaults)
    while let known = mirror, known.subjectType != UserDefaults.self { mirror = known.superclassMirror }
    self.init(mirror?.children.first { $0.label == "suite" }?.value)
  }

  init(_ property: Any?) {
    switch property {
    case let name as String: self = .named(name)
    case .some(let value) where value is String?: self = .standard
    default: self = .unknown
    }
  }
}
