public import Formats
public import Model
import SecretMemory
public import Store
import Tree

/// The plan of an import, made before anything is changed.
public struct ImportPlan {
  /// The action of the import for one entry.
  public enum Step: String, Sendable {
    case new
    case same
    case replace
    case keep
    case conflict

    var isChange: Bool { self == .new || self == .replace }
  }

  /// One item of the import, compared with what is there.
  public struct PlannedItem {
    let item: Item
    /// The attributes in the import; all others stay if the item is replaced.
    let attributes: [ItemEntry.Attribute]
    let secret: SecretSlice
    /// nil: the import names none, and a present one stays.
    let otpauth: SecretSlice?
    /// The action of the import for the item.
    public let step: Step
    /// The item that is replaced, or stays.
    let present: Item?

    /// The path in the tree: `keychain/generic/SERVICE/ACCOUNT`.
    public var path: String { TreePaths.path(item.identity) }
    /// Whether the import writes it.
    public var isWritten: Bool { step.isChange }
    /// The flags that have to be met before its secret is given.
    public var access: AccessFlags { item.access }
  }

  /// The settings, in the order of the file.
  public private(set) var settings: [(entry: SettingEntry, step: Step)] = []
  /// The items, in the order of the file.
  public private(set) var items: [PlannedItem] = []
  /// The counts, known before anything is changed.
  public let summary: ImportSummary
  /// Paths that the import has twice with different values, and that are refused.
  private let refused: [String]

  /// - Throws: `ImportExportError` for what can't be stored, or compared.
  public init(
    _ contents: Contents, settings store: SettingsStore, keychain: KeychainStore?, _ options: ImportOptions
  ) throws(ImportExportError) {
    var refused: [String] = []
    var keys: [String: SettingValue] = [:]
    var suites = PresentSuites(store)
    for entry in contents.settings {
      let path = TreePaths.path(entry)
      if let other = keys.updateValue(entry.value, forKey: path) {
        if other != entry.value { refused.append(path) }
        continue
      }
      settings.append((entry, try Self.step(entry, &suites, options.conflicts)))
    }
    let distinct: DistinctItems
    do throws(FormatError) {
      let holdsOtpauth = keychain?.engine.otpauthURIs != nil
      distinct = try DistinctItems(contents.items, options.duplicates, holdsOtpauth: holdsOtpauth) {
        identity in
        (try? keychain?.read { $0[identity] }.first).map(Self.protection) ?? []
      }
    } catch {
      throw ImportExportError(nil, error)
    }
    for entry in distinct.items { items.append(try Self.planned(entry, keychain, options.conflicts)) }
    self.refused = refused + distinct.refused
    let steps = settings.map(\.step) + items.map(\.step)
    summary = ImportSummary(
      settings: settings.count { $0.step == .new }, items: items.count { $0.step == .new },
      replaced: steps.count { $0 == .replace }, same: steps.count { $0 == .same },
      kept: steps.count { $0 == .keep }, omitted: contents.omitted, remarks: contents.remarks, distinct)
  }

  /// How many things will be written.
  public var changes: Int {
    settings.count { $0.step.isChange } + items.count { $0.step.isChange }
  }

  var changedItems: [PlannedItem] { items.filter(\.step.isChange) }

  /// Why nothing may be done; nil: it may.
  public var conflict: ImportConflict? {
    if !refused.isEmpty { return .duplicates(refused) }
    let taken = lines.filter { $0.step == .conflict }.map(\.path)
    return taken.isEmpty ? nil : .present(taken)
  }

  /// Each thing with what will be done, in the import's order.
  public var lines: [(step: Step, path: String)] {
    settings.map { ($0.step, TreePaths.path($0.entry)) } + items.map { ($0.step, $0.path) }
  }

  /// The paths that the import has twice with different values.
  public var duplicates: [String] { refused }
}

/// Why nothing was imported.
public enum ImportConflict: Sendable {
  /// The import has different values for these paths.
  case duplicates([String])
  /// These paths hold other values.
  case present([String])
}

/// The counts of an import, for people.
public struct ImportSummary: Sendable {
  /// The number of new settings.
  public let settings: Int
  /// The number of new items.
  public let items: Int
  /// The number of settings and items that are replaced.
  public let replaced: Int
  /// The number of settings and items that are there already and equal.
  public let same: Int
  /// The number of settings and items that stay although the import has others.
  public let kept: Int
  /// How many entries of the file are not imported.
  public let omitted: Int
  /// Their kinds, one remark each.
  public let remarks: [String]
  /// Paths of items that got a number, because another of the import has their name.
  public let numbered: [String]
  /// Paths of items into which others of the import with the same name and secret were merged.
  public let merged: [String]
  /// Paths of items of their own that are there for one-time codes.
  public let codes: [String]

  init(
    settings: Int, items: Int, replaced: Int, same: Int, kept: Int, omitted: Int, remarks: [String],
    _ distinct: DistinctItems
  ) {
    self.settings = settings
    self.items = items
    self.replaced = replaced
    self.same = same + distinct.repeated
    self.kept = kept
    self.omitted = omitted
    self.remarks = remarks
    numbered = distinct.numbered
    merged = distinct.merged
    codes = distinct.codes
  }

  /// Whether all of the import is there now, under its own names.
  public var isComplete: Bool { omitted == 0 && numbered.isEmpty && merged.isEmpty && codes.isEmpty }

  /// One line: `2 settings and 5000 items were imported, 0 replaced, 3 left out: 2 attachments, 1 passkey`.
  public var line: String {
    var text = "\(Self.count(settings, "setting")) and \(Self.count(items, "item")) were imported"
    text += ", \(replaced) replaced"
    if same > 0 { text += ", \(same) were there already" }
    if kept > 0 { text += ", \(kept) kept as they were" }
    if !numbered.isEmpty { text += ", \(numbered.count) numbered" }
    if !merged.isEmpty { text += ", \(merged.count) merged" }
    if !codes.isEmpty { text += ", \(Self.count(codes.count, "one-time code")) as items of their own" }
    guard omitted > 0 else { return text }
    return "\(text), \(omitted) left out: \(remarks.joined(separator: ", "))"
  }

  private static func count(_ count: Int, _ noun: String) -> String {
    count == 1 ? "1 \(noun)" : "\(count) \(noun)s"
  }
}
