import ClusterRecords
import Model
import VaultRecords

/// An entry of the list of suites: the name that a suite's random id has.
struct SuiteName: CollectionContent, Hashable {
  var name: ExactString
  /// The suite was removed, and values that its settings had are still kept.
  var isRemoved = false

  init(name: ExactString, isRemoved: Bool = false) { (self.name, self.isRemoved) = (name, isRemoved) }

  init(_ bytes: Span<UInt8>, _ id: ItemKey) throws(StoreError) {
    var reader = FieldReader(bytes)
    guard let field = try reader.next(), field.tag == 1 else { throw .damaged(what: "the name of a suite") }
    name = try field.string()
    guard let second = try reader.next() else { return }
    guard second.tag == 2, second.bytes.isEmpty, try reader.next() == nil else {
      throw .damaged(what: "the name of a suite")
    }
    isRemoved = true
  }

  func encoded() throws(StoreError) -> [UInt8] {
    var writer = FieldWriter(capacity: name.utf8.count + 8)
    writer.put(1, name.utf8)
    if isRemoved { writer.put(2, [UInt8]()) }
    return writer.bytes
  }

  var kept: SuiteName { self }

  /// The ids by their names.
  struct View: CollectionView {
    typealias Content = SuiteName
    private(set) var ids: [ExactString: ItemKey] = [:]
    /// The removed suites of which values are kept.
    private(set) var removed: [ExactString: ItemKey] = [:]

    init() {}

    mutating func put(_ id: ItemKey, _ content: SuiteName, replacing old: SuiteName?) {
      if let old { remove(id, old) }
      if content.isRemoved { removed[content.name] = id } else { ids[content.name] = id }
    }

    mutating func remove(_ id: ItemKey, _ old: SuiteName) {
      if ids[old.name] == id { ids[old.name] = nil }
      if removed[old.name] == id { removed[old.name] = nil }
    }
  }

  /// - Throws: `invalidName`, `nameTooLong`, as of a file `NAME.plist`.
  static func check(_ name: ExactString) throws(StoreError) {
    guard !name.isEmpty else { throw .invalidName(reason: "a suite needs a name") }
    guard !name.utf8.contains(where: { $0 == UInt8(ascii: "/") || $0 == 0 }) else {
      throw .invalidName(reason: "a suite's name can't hold “/” or NUL")
    }
    guard name.utf8.count + ".plist".utf8.count <= 255 else { throw .nameTooLong }
  }
}
