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
  private var places: [ItemIdentity: Int] = [:]
  private let protection: (ItemIdentity) -> [ItemEntry.Attribute]

  /// `protection`: the attributes that protect the item that is there already; what the import says goes before.
  ///
  /// - Throws: `FormatError` for a secret that is not coded as it should be.
  init(
    _ entries: [ItemEntry], _ policy: ImportOptions.Duplicates,
    protection: @escaping (ItemIdentity) -> [ItemEntry.Attribute]
  ) throws(FormatError) {
    self.protection = protection
    var distinct: [ItemEntry] = []
    for entry in entries { try take(entry, policy, &distinct) }
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
      distinct[index] = Self.merge(first, entry)
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
    let path = TreePaths.path(entry.identity)
    var attributes = [ItemEntry.Attribute("user." + ItemEntry.belongsTo, path)]
    // What protects the item protects what belongs to it.
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
    guard try isEqual(first.secret, second.secret) else { return false }
    for (left, right) in zip(first.companions, second.companions) {
      guard left.name == right.name, try isEqual(left.secret, right.secret) else { return false }
    }
    return true
  }

  static func isEqual(_ left: SecretSlice, _ right: SecretSlice) throws(FormatError) -> Bool {
    let bytes = try left.bytes()
    return try right.bytes() == bytes
  }

  /// The first with what the second has besides: comments are joined, addresses and others are numbered.
  private static func merge(_ first: ItemEntry, _ second: ItemEntry) -> ItemEntry {
    var merged = first
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
