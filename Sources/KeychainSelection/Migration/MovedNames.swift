import Model
import Store

/// The names of moved items in the other keychain.
///
/// Only a Secret Service has more than one item of an identity. The first one keeps it; each other one gets the class `other`, where its
/// name is the label, or the label with a number. Clients find it by its label and its attributes as before.
struct MovedNames {
  /// The identities of all items that are moved: no other item gets one of them.
  private let reserved: Set<ItemIdentity>
  /// The items that the other keychain had before.
  private let known: [ItemIdentity: Item]
  /// The first item of each identity.
  private let firsts: Set<ItemID>
  /// The identities that items have there, by their ids in the old keychain.
  private var moved: [ItemID: ItemIdentity] = [:]
  private var taken: Set<ItemIdentity> = []

  init(_ items: [Item], _ known: [ItemIdentity: Item]) {
    self.known = known
    var reserved: Set<ItemIdentity> = []
    firsts = Set(items.filter { reserved.insert($0.identity).inserted }.map(\.id))
    self.reserved = reserved
  }

  /// Whether an item keeps its identity.
  func isFirst(_ item: Item) -> Bool { firsts.contains(item.id) }

  /// The identity that an item has in the other keychain.
  func identity(of item: Item) -> ItemIdentity { moved[item.id] ?? item.identity }

  func renamed(of items: [Item]) -> [KeychainMigration.Renamed] {
    items.compactMap { item in
      let present = identity(of: item)
      return present == item.identity
        ? nil : KeychainMigration.Renamed(former: item.identity, present: present)
    }
  }

  /// Copies an item under the first name that is free, or that has an equal copy already, as of a run that was interrupted.
  ///
  /// `copy` gets the item with its name, and the item of the other keychain that has the name.
  /// - Throws: what `copy` throws; `notPermitted` where the other keychain has an item of that identity which clients can't tell from it.
  mutating func moving(
    _ item: Item, _ copy: (Item, Item?) throws(StoreError) -> ItemID?
  ) throws(StoreError) -> (Item, ItemID?) {
    let isFirst = isFirst(item)
    if isFirst {
      do throws(StoreError) { return (item, try copy(item, known[item.identity])) } catch {
        guard error == .exists else { throw error }
      }
    }
    let label = ServiceItem.label(of: item)
    for number in 1... {
      let other = item.asOther(named: ExactString(number == 1 ? label : "\(label) (\(number))"))
      guard !reserved.contains(other.identity), !taken.contains(other.identity) else { continue }
      let present = known[other.identity]
      // One that was not the first in a run that was interrupted may be so now, and has a copy.
      guard present != nil || !isFirst || isAnother(item) else { throw .isThereAlready }
      do throws(StoreError) {
        let added = try copy(other, present)
        taken.insert(other.identity)
        moved[item.id] = other.identity
        return (other, added)
      } catch {
        guard error == .exists else { throw error }
      }
    }
    throw .isThereAlready
  }

  /// Whether clients tell an item of a Secret Service from the one that has its identity in the other keychain.
  private func isAnother(_ item: Item) -> Bool {
    guard item.collection != nil, let other = known[item.identity] else { return false }
    return !item.hasSameClientAttributes(as: other)
  }
}

extension StoreError {
  fileprivate static var isThereAlready: StoreError {
    .notPermitted(
      reason:
        "the new keychain has another item with this path: give one of the two another path (`keyhole mv`), or remove the one that is "
        + "out of date, and run it again")
  }
}
