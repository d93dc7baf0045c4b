import Formats
import Model
import SecretMemory

/// The items of an import, each under a name of its own, companions as items after the one that they belong to.
struct DistinctItems {
  private(set) var items: [ItemEntry] = []
  /// How many were repeated with the same secret and attributes, and are there once.
  private(set) var repeated = 0
  /// The paths of those that got a number, as they are now.
  private(set) var numbered: [String] = []
  /// The paths of those that were merged into another.
  private(set) var merged: [String] = []
  /// The paths of those that are refused.
  private(set) var refused: [String] = []
  /// The paths of items of their own that are there for one-time codes.
  private(set) var codes: [String] = []
  private var places: [ItemIdentity: Int] = [:]
  private let protection: (ItemIdentity) -> [ItemEntry.Attribute]

  /// `holdsOtpauth`: whether an `otpauth:` URI is its item's second secret; else it is an item of its own.
  /// `protection`: the attributes that protect the item that is there already; what the import says goes before.
  ///
  /// - Throws: `FormatError` for a secret that is not coded as it should be.
  init(
    _ entries: [ItemEntry], _ policy: ImportOptions.Duplicates, holdsOtpauth: Bool,
    protection: @escaping (ItemIdentity) -> [ItemEntry.Attribute]
  ) throws(FormatError) {
    self.protection = protection
    var distinct: [ItemEntry] = []
    for entry in entries { try take(holdsOtpauth ? entry : entry.withoutOtpauth, policy, &distinct) }
    // Names that are numbered must not be those of companions, and the other way round.
    for entry in distinct {
      items.append(entry)
      for companion in entry.companions { addCompanion(companion, of: entry) }
    }
  }

  private mutating func take(
    _ entry: ItemEntry, _ policy: ImportOptions.Duplicates, _ distinct: inout [ItemEntry]
  ) throws(FormatError) {
    guard let index = places[entry.identity] else {
      places[entry.identity] = distinct.count
      return distinct.append(entry)
    }
    let first = distinct[index]
    if try Self.isSame(first, entry) { return repeated += 1 }
    switch policy {
    case .refuse: refused.append(TreePaths.path(entry.identity))
    case .merge where try Self.isEqual(first.secret, entry.secret):
      distinct[index] = try Self.merge(first, entry)
      merged.append(TreePaths.path(entry.identity))
    case .merge, .number:
      var entry = entry
      entry.identity = free(entry.identity)
      numbered.append(TreePaths.path(entry.identity))
      places[entry.identity] = distinct.count
      distinct.append(entry)
    }
  }

  /// The same identity with the first number that no other has.
  private func free(_ identity: ItemIdentity) -> ItemIdentity {
    var number = 2
    while true {
      let next = identity.changingAccount { $0.isEmpty ? "(\(number))" : "\($0) (\(number))" }
      guard places[next] != nil else { return next }
      number += 1
    }
  }

  private mutating func addCompanion(_ companion: ItemEntry.Companion, of entry: ItemEntry) {
    var identity = entry.identity.companion(companion.name)
    if places[identity] != nil {
      identity = free(identity)
      numbered.append(TreePaths.path(identity))
    }
    places[identity] = items.count
    if companion.isOneTimeCode { codes.append(TreePaths.path(identity)) }
    let path = TreePaths.path(entry.identity)
    var attributes = [ItemEntry.Attribute("user." + ItemEntry.belongsTo, path)]
    // The protection of an item holds for the items that belong to it.
    let own = entry.attributes.filter { Self.protectionNames.contains($0.name) }
    attributes += own
    attributes += protection(entry.identity).filter { present in !own.contains { $0.name == present.name } }
    items.append(ItemEntry(identity, attributes, companion.secret))
  }

  /// The attributes that say who may see an item's secret, and when.
  static let protectionNames: Set<String> = [
    "user.keyhole.access", "user.keyhole.accessible", "user.keyhole.programs", "user.keyhole.sealed",
  ]
}

extension DistinctItems {
  private static func isSame(_ first: ItemEntry, _ second: ItemEntry) throws(FormatError) -> Bool {
    guard Set(first.attributes) == Set(second.attributes), first.companions.count == second.companions.count
    else { return false }
    guard try isEqual(first.secret, second.secret), try isEqual(first.otpauth, second.otpauth) else {
      return false
    }
    for (left, right) in zip(first.companions, second.companions) {
      guard left.name == right.name, try isEqual(left.secret, right.secret) else { return false }
    }
    return true
  }

  private static func isEqual(_ left: SecretSlice?, _ right: SecretSlice?) throws(FormatError) -> Bool {
    guard let left, let right else { return left == nil && right == nil }
    return try isEqual(left, right)
  }

  static func isEqual(_ left: SecretSlice, _ right: SecretSlice) throws(FormatError) -> Bool {
    let bytes = try left.bytes()
    return try right.bytes() == bytes
  }

  /// The first with what the second has besides: comments are joined, addresses and others are numbered.
  private static func merge(_ first: ItemEntry, _ second: ItemEntry) throws(FormatError) -> ItemEntry {
    var (merged, second) = (first, second)
    let present = merged.otpauth ?? second.otpauth
    if try isEqual(present, second.otpauth) { second.otpauth = nil }
    merged.otpauth = present
    // Another one stays beside it.
    second = second.withoutOtpauth
    for attribute in second.attributes {
      guard let index = merged.attributes.firstIndex(where: { $0.name == attribute.name }) else {
        merged.attributes.append(attribute)
        continue
      }
      let present = merged.attributes[index].value
      guard present != attribute.value else { continue }
      switch attribute.name {
      case "user.comment": merged.attributes[index].value = present + [0x0A] + attribute.value
      case _ where attribute.name.hasPrefix("user.keyhole."): continue
      default:
        let isKnown = merged.attributes.contains {
          $0.value == attribute.value && $0.name.hasPrefix(attribute.name + "-")
        }
        if !isKnown { merged.attributes.append(.init(unique(attribute.name, merged), attribute.value)) }
      }
    }
    let names = Set(first.companions.map(\.name))
    for companion in second.companions {
      var companion = companion
      var number = 2
      while names.contains(companion.name), number < 1000 {
        companion.name = "\(companion.name)-\(number)"
        number += 1
      }
      merged.companions.append(companion)
    }
    return merged
  }

  private static func unique(_ name: String, _ entry: ItemEntry) -> String {
    var number = 2
    while entry.attributes.contains(where: { $0.name == "\(name)-\(number)" }) { number += 1 }
    return "\(name)-\(number)"
  }
}

extension ItemEntry {
  /// With its `otpauth:` URI as a companion, or as its secret where that is empty.
  fileprivate var withoutOtpauth: ItemEntry {
    guard let uri = otpauth else { return self }
    var entry = self
    entry.otpauth = nil
    guard !secret.isEmpty else {
      entry.secret = uri
      return entry
    }
    let companion = Companion(name: Companion.codeName, secret: uri, isOneTimeCode: true)
    let isTaken = companions.contains { $0.name == companion.name }
    entry.companions.insert(companion, at: isTaken ? companions.count : 0)
    return entry
  }
}
