import Model

/// The times of the latest changes in folders and classes that were asked for. One that is not here has to be found among the items.
struct LatestChanges {
  private var ofFolders: [ItemClass: [ExactString: Timestamp]] = [:]
  private var ofClasses: [ItemClass: Timestamp] = [:]

  /// nil as `folder` stands for the whole class.
  subscript(folder: ExactString?, itemClass: ItemClass) -> Timestamp? {
    get { folder.map { ofFolders[itemClass]?[$0] } ?? ofClasses[itemClass] }
    set {
      guard let folder else { return ofClasses[itemClass] = newValue }
      ofFolders[itemClass, default: [:]][folder] = newValue
    }
  }

  mutating func insert(_ item: Item) {
    let (itemClass, folder) = (item.identity.itemClass, item.identity.folder)
    for place in [folder, nil] {
      if let known = self[place, itemClass], known < item.modified { self[place, itemClass] = item.modified }
    }
  }

  /// In the same folder and class.
  mutating func replace(_ old: Item, by new: Item) {
    if new.modified < old.modified { remove(old) }
    insert(new)
  }

  /// Without the latest item, the time is another one's.
  mutating func remove(_ item: Item) {
    let (itemClass, folder) = (item.identity.itemClass, item.identity.folder)
    for place in [folder, nil] where self[place, itemClass] == item.modified { self[place, itemClass] = nil }
  }
}
