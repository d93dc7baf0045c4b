internal import Model
internal import Store

/// Keyhole's own attributes of an item, by the names behind `user.keyhole.`.
enum KeyholeAttribute: String, CaseIterable {
  case access
  case accessible
  /// Of an item of the class `other`: the label that a client of the Secret Service gave, where the name is another one.
  case clientLabel = "client-label"
  case collection
  case contentType = "content-type"
  case created
  case eol
  case genericSchema = "generic-schema"
  case history
  case label
  case modified
  case name
  case omitted
  case programs
  case sealed

  /// The full name.
  var name: String { "user.keyhole." + rawValue }

  /// Whether listxattr(2) names it: only what a copy needs to be the same item.
  func isListed(for item: Item) -> Bool {
    switch self {
    case .label, .created, .modified: true
    case .accessible: item.accessibility != .whenUnlocked
    case .access: !item.access.isEmpty
    case .programs: item.programs != nil
    case .eol: item.keepsLineEnd
    case .history: item.attributes[Item.historyAttribute] != nil
    case .sealed: item.isSealed
    case .name: false
    case .clientLabel, .contentType, .genericSchema, .omitted: text(of: item) != nil
    // Of another program's keyring, the collection can't be chosen.
    case .collection: item.collection == nil && item.attributes[Item.collectionAttribute] != nil
    }
  }

  /// nil: the item has none.
  func value(of item: Item) -> [UInt8]? {
    text(of: item).map { Array($0.utf8) }
  }

  /// The value, which is always a text; nil: the item has none.
  func text(of item: Item) -> String? {
    switch self {
    case .label: Self.label(of: item).string
    case .created: item.created.iso8601
    case .modified: item.modified.iso8601
    case .accessible: item.accessibility.rawValue
    case .access: item.access.isEmpty ? nil : item.access.text
    case .programs: item.programs?.string
    case .eol: item.keepsLineEnd ? "exact" : nil
    case .history: item.attributes[Item.historyAttribute].map { String(decoding: $0, as: UTF8.self) }
    case .sealed: item.isSealed ? "true" : nil
    case .name: ItemFolderName.plainName(of: item.identity).string
    case .collection: Self.collection(of: item)
    case .clientLabel: item.identity.itemClass == .other ? item.label?.string : nil
    case .contentType:
      item.attributes[Item.contentTypeAttribute].map { String(decoding: $0, as: UTF8.self) }
    case .genericSchema: item.hasGenericSchema ? "true" : nil
    case .omitted: Self.omitted(of: item)
    }
  }

  /// The names with a space between them; `-`: a client made the item, and gave them all.
  private static func omitted(of item: Item) -> String? {
    guard item.attributes[Item.omittedAttribute] != nil else { return nil }
    let names = item.omittedNames
    return names.isEmpty ? noneOmitted : names.sorted().map(\.string).joined(separator: " ")
  }

  private static let noneOmitted = "-"

  /// The vault is one collection, but for those of its own Secret Service.
  private static func collection(of item: Item) -> String {
    if let collection = item.collection { return collection.string }
    return item.attributes[Item.collectionAttribute].map { String(decoding: $0, as: UTF8.self) } ?? wholeVault
  }

  private static let wholeVault = "vault"

  private static func label(of item: Item) -> ExactString {
    if case .other(let label) = item.identity { return label }
    return item.label ?? defaultLabel(of: item)
  }

  private static func defaultLabel(of item: Item) -> ExactString {
    switch item.identity {
    case .generic(let service, _): service
    case .internet(let internet): internet.server
    case .other(let label): label
    }
  }
}

extension KeyholeAttribute {
  func set(_ value: [UInt8], on item: inout Item) throws(StoreError) {
    switch self {
    case .label: try setLabel(value, on: &item)
    case .created: item.created = try date(value, present: item.created)
    case .modified: item.modified = try date(value, present: item.modified)
    case .accessible: item.accessibility = try accessibility(value)
    case .access: item.access = try access(value)
    case .programs: item.programs = try ProgramRules.checked(value)
    case .eol: item.keepsLineEnd = try lineEnd(value)
    case .history: item.attributes[Item.historyAttribute] = try history(value)
    case .sealed: item.isSealed = try seal(value, item.access)
    case .collection: try setCollection(value, on: &item)
    case .clientLabel: try setClientLabel(value, on: &item)
    case .contentType: item.attributes[Item.contentTypeAttribute] = try ItemAttributeValue.text(value)
    case .genericSchema: item.hasGenericSchema = try flag(value)
    case .omitted:
      item.omittedNames = try names(value)
      if item.omittedNames.isEmpty { item.attributes[Item.omittedAttribute] = [] }
    case .name: try checkComputed(value, on: item)
    }
  }

  func remove(from item: inout Item) throws(StoreError) {
    // `label` and `accessible` are never missing: they go back to their defaults, which can be read.
    guard value(of: item) != nil else { throw .noSuchAttribute }
    switch self {
    case .label: if item.identity.itemClass != .other { item.label = nil }
    case .clientLabel: item.label = nil
    case .contentType: item.attributes[Item.contentTypeAttribute] = nil
    case .genericSchema: item.hasGenericSchema = false
    case .omitted: item.omittedNames = []
    case .accessible: item.accessibility = .whenUnlocked
    case .access:
      item.access = []
      item.attributes[FingerprintEnrollment.attribute] = nil
    case .programs: item.programs = nil
    case .eol: item.keepsLineEnd = false
    case .history: item.attributes[Item.historyAttribute] = nil
    case .sealed: item.isSealed = try seal(Array("false".utf8), item.access)
    case .collection: item.attributes[Item.collectionAttribute] = nil
    case .created, .modified, .name: break
    }
  }
}

extension KeyholeAttribute {
  /// A label that is the default is kept as none, so that it follows when the item is moved.
  private func setLabel(_ value: [UInt8], on item: inout Item) throws(StoreError) {
    if case .other(let label) = item.identity { return try ItemAttributes.check(value, is: label) }
    guard let label = ExactString(utf8: try ItemAttributeValue.text(value)) else { return }
    item.label = label == Self.defaultLabel(of: item) ? nil : label
  }

  private func setClientLabel(_ value: [UInt8], on item: inout Item) throws(StoreError) {
    guard item.identity.itemClass == .other else {
      throw .invalidValue(
        reason: "only an item of the class other has a label beside its name; set keyhole.label")
    }
    guard let label = ExactString(utf8: try ItemAttributeValue.text(value)) else { return }
    item.label = item.identity == .other(label: label) ? nil : label
  }

  /// The names of attributes, of which none has a space; `-`: no names.
  private func names(_ value: [UInt8]) throws(StoreError) -> Set<ExactString> {
    if value == Array(Self.noneOmitted.utf8) { return [] }
    let names = value.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
    guard names.allSatisfy({ !$0.isEmpty && $0.allSatisfy { (0x21...0x7E).contains($0) } }) else {
      throw .invalidValue(reason: "not names of attributes with a space between them")
    }
    return Set(names.compactMap { ExactString(utf8: $0) })
  }

  private func flag(_ value: [UInt8]) throws(StoreError) -> Bool {
    guard value == Array("true".utf8) else { throw .invalidValue(reason: "not true") }
    return true
  }

  /// Of another program's keyring, the item stays where it is.
  private func setCollection(_ value: [UInt8], on item: inout Item) throws(StoreError) {
    guard item.collection == nil else { return try checkComputed(value, on: item) }
    guard (1...Self.longestCollection).contains(value.count), value.allSatisfy(Self.isOfCollection) else {
      throw .invalidValue(
        reason: "not letters, digits and _, at most \(Self.longestCollection), as collections are named")
    }
    item.attributes[Item.collectionAttribute] = value == Array(Self.wholeVault.utf8) ? nil : value
  }

  /// In bytes, as the Secret Service API has it in object paths.
  private static let longestCollection = 64

  private static func isOfCollection(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  /// The second that is shown keeps the nanoseconds that are not.
  private func date(_ value: [UInt8], present: Timestamp) throws(StoreError) -> Timestamp {
    guard let date = ExactString(utf8: value).flatMap({ Timestamp(iso8601: $0.string) }) else {
      throw .invalidValue(reason: "not a date like 2026-11-21T07:53:00Z, in whole seconds")
    }
    return date.seconds == present.seconds ? present : date
  }

  private func accessibility(_ value: [UInt8]) throws(StoreError) -> Accessibility {
    guard let word = ExactString(utf8: value).flatMap({ Accessibility(rawValue: $0.string) }) else {
      let words = Accessibility.allCases.map(\.rawValue).joined(separator: ", ")
      throw .invalidValue(reason: "not one of \(words)")
    }
    return word
  }

  private func access(_ value: [UInt8]) throws(StoreError) -> AccessFlags {
    guard let flags = ExactString(utf8: value).flatMap({ AccessFlags(text: $0.string) }) else {
      let words = AccessFlags.Flag.allCases.map(\.rawValue).joined(separator: ", ")
      throw .invalidValue(reason: "not a sensible list of \(words), joined by |")
    }
    return flags
  }

  private func lineEnd(_ value: [UInt8]) throws(StoreError) -> Bool {
    guard value == Array("exact".utf8) else { throw .invalidValue(reason: "not exact") }
    return true
  }

  private func history(_ value: [UInt8]) throws(StoreError) -> [UInt8] {
    let most = HistoryRetention.mostVersions
    guard let text = ExactString(utf8: value)?.string, let number = Int(text), (0...most).contains(number)
    else {
      throw .invalidValue(reason: "not a number of versions, 0 to \(most)")
    }
    return Array(String(number).utf8)
  }

  /// An item with a password of its own is sealed with it.
  private func seal(_ value: [UInt8], _ access: AccessFlags) throws(StoreError) -> Bool {
    switch ExactString(utf8: value) {
    case "true": return true
    case "false" where access.needsPassword:
      throw .invalidValue(reason: "the item has a password of its own, which only a seal can hold")
    case "false": return false
    default: throw .invalidValue(reason: "not true or false")
    }
  }

  private func checkComputed(_ value: [UInt8], on item: Item) throws(StoreError) {
    guard self.value(of: item) == value else {
      throw .notPermitted(reason: "Keyhole computes this attribute")
    }
  }
}
