import Tree

/// The rules of SPECIFICATION.md for `keychain/generic`, in dictionaries: folders, items, scratch, and open files.
///
/// It knows one handle an item, and leaves out what no program relies on (see `KeychainRun`).
struct KeychainModel {
  struct Name: Hashable, CustomStringConvertible {
    var service: String
    var account: String
    var path: String { "keychain/generic/\(service)/\(account)" }
    var description: String { "\(service)/\(account)" }
  }

  final class Item {
    /// nil: the item is staged.
    var secret: [UInt8]?
    var comment: String?
    var keepsLineEnd = false
    /// The value is being created, or stands aside under a scratch name.
    var isPending = false
    var aside: String?
    var scratch: [String: [UInt8]] = [:]
    var file: File?

    var isShown: Bool { isPending || (secret != nil && aside == nil) }
    var content: [UInt8] { isPending ? [] : secret ?? [] }
    var files: Set<String> { Set(scratch.keys).union(isShown ? ["value"] : []) }
  }

  /// A file that is open: it belongs to an item, until it is removed.
  final class File {
    var item: Item?
    var content: [UInt8]
    var appended: [UInt8]?
    var isRewritten: Bool
    var isTruncated: Bool
    var isChanged = false

    init(_ item: Item, truncating: Bool) {
      self.item = item
      (content, isRewritten, isTruncated) = (truncating ? [] : item.content, truncating, truncating)
    }
  }

  enum Failure: Error { case missing, exists, notEmpty }

  var items: [Name: Item] = [:]
  var kept: Set<String> = []

  var folders: Set<String> { kept.union(items.keys.map(\.service)) }

  func item(_ name: Name) throws -> Item {
    guard let item = items[name] else { throw Failure.missing }
    return item
  }

  private func store(_ content: [UInt8], _ item: Item) {
    let isText = String(validating: content, as: UTF8.self) != nil
    let isOneLine = isText && content.firstIndex(of: 0x0A) == content.count - 1
    item.secret = isOneLine && !item.keepsLineEnd ? content.dropLast() : content
    (item.isPending, item.aside) = (false, nil)
  }

  private func replaceFile(_ item: Item) {
    item.file?.item = nil
    item.file = nil
  }
}

// MARK: Values and scratch

extension KeychainModel {
  func open(_ name: Name, truncating: Bool, exclusive: Bool) throws -> File {
    let item = try item(name)
    guard !item.isShown || !exclusive else { throw Failure.exists }
    let isNew = !item.isShown
    if isNew { item.isPending = true }
    let file = File(item, truncating: truncating || isNew)
    item.file = file
    return file
  }

  func write(_ bytes: [UInt8], at offset: Int?, _ file: File) {
    file.isChanged = true
    if offset == nil, !file.isRewritten {
      file.appended = (file.appended ?? []) + bytes
      return
    }
    rewrite(file)
    let start = offset ?? file.content.count
    pad(file, to: start + bytes.count)
    file.content.replaceSubrange(start..<start + bytes.count, with: bytes)
  }

  func truncate(_ count: Int, _ file: File) {
    file.isChanged = true
    rewrite(file)
    pad(file, to: count)
    file.content.removeLast(file.content.count - count)
  }

  private func rewrite(_ file: File) {
    file.content += file.appended ?? []
    file.appended = nil
    file.isRewritten = true
  }

  private func pad(_ file: File, to count: Int) {
    file.content += [UInt8](repeating: 0, count: max(0, count - file.content.count))
  }

  func flush(_ file: File) {
    if file.isChanged { commit(file) }
  }

  func close(_ file: File) {
    if file.isChanged || file.isTruncated { commit(file) }
    file.item?.file = nil
  }

  private func commit(_ file: File) {
    defer { (file.isChanged, file.isTruncated) = (false, false) }
    guard let appended = file.appended else {
      if let item = file.item { store(file.content, item) }
      return
    }
    file.appended = nil
    guard let item = file.item else { return file.content = [] }
    store((item.secret ?? []) + appended, item)
    (file.content, file.isRewritten) = (item.content, false)
  }

  func removeValue(_ name: Name) throws {
    let item = try item(name)
    guard item.isShown else { throw Failure.missing }
    (item.secret, item.isPending, item.aside) = (nil, false, nil)
    replaceFile(item)
  }

  func removeScratch(_ scratch: String, _ name: Name) throws {
    let item = try item(name)
    guard item.scratch.removeValue(forKey: scratch) != nil else { throw Failure.missing }
    if item.aside == scratch { (item.secret, item.aside) = (nil, nil) }
  }

  func setAside(_ name: Name, as scratch: String) throws {
    let item = try item(name)
    guard item.isShown else { throw Failure.missing }
    item.scratch[scratch] = item.content
    item.aside = scratch
  }

  func save(_ scratch: String, _ name: Name) throws {
    let item = try item(name)
    guard let content = item.scratch.removeValue(forKey: scratch) else { throw Failure.missing }
    store(content, item)
    replaceFile(item)
  }
}

// MARK: Directories

extension KeychainModel {
  mutating func makeFolder(_ service: String) throws {
    guard !folders.contains(service) else { throw Failure.exists }
    kept.insert(service)
  }

  mutating func removeFolder(_ service: String) throws {
    guard folders.contains(service) else { throw Failure.missing }
    guard !items.keys.contains(where: { $0.service == service }) else { throw Failure.notEmpty }
    kept.remove(service)
  }

  mutating func makeItem(_ name: Name) throws {
    guard folders.contains(name.service) else { throw Failure.missing }
    guard items[name] == nil else { throw Failure.exists }
    items[name] = Item()
  }

  mutating func removeItem(_ name: Name) throws {
    guard try item(name).files.isEmpty else { throw Failure.notEmpty }
    items[name] = nil
    kept.insert(name.service)
  }

  mutating func moveItem(_ old: Name, _ new: Name) throws {
    let moved = try item(old)
    guard folders.contains(new.service) else { throw Failure.missing }
    guard old != new else { return }
    guard items[new]?.files.isEmpty ?? true else { throw Failure.notEmpty }
    (items[old], items[new]) = (nil, moved)
    kept.insert(old.service)
  }

  mutating func moveFolder(_ old: String, _ new: String) throws {
    guard folders.contains(old) else { throw Failure.missing }
    guard old != new else { return }
    guard !items.keys.contains(where: { $0.service == new }) else { throw Failure.notEmpty }
    kept.remove(new)
    if kept.remove(old) != nil { kept.insert(new) }
    for (name, item) in items where name.service == old {
      items[name] = nil
      items[Name(service: new, account: name.account)] = item
    }
  }
}
