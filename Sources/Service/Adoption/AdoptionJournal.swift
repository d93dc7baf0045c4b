import Model
import Platform
import Store
import Suites

/// Which files were adopted, so that they can be written again: `adopted.plist` in the folder of the state. It holds no value.
struct AdoptionJournal: ~Copyable {
  struct Entry: Equatable {
    /// The file that became a link.
    let file: String
    /// The path in the tree of what it leads to.
    let target: String
    /// Where the link leads.
    let link: String
    /// The twelve bits of chmod(2) of the file.
    let permissions: UInt32
  }

  /// The end of the name of a file whose name a link has taken.
  static let remainsEnding = ".before-keyhole"

  private let folder: String
  private let lock: Descriptor
  private(set) var entries: [Entry]

  private var path: String { folder + "/adopted.plist" }

  /// Waits for another process that has it.
  ///
  /// - Throws: `Failure` for one that can't be read.
  init(in folder: String) throws {
    UserFolders.make(folder)
    let path = folder + "/adopted.plist"
    let (lock, entries): (Int32, [Entry])
    do throws(Errno) {
      let file = try Descriptor(folder + "/adopted.lock", [.readingAndWriting, .create, .noFollow])
      try file.lock()
      entries = try Self.entries(Files.hasName(path) ? try Files.read(path) : [])
      lock = file.release()
    } catch {
      throw Failure(path, "it can't be read: \(error)")
    }
    self.folder = folder
    self.lock = Descriptor(owning: lock)
    self.entries = entries
  }

  /// The files that were adopted, as the journal is now. It waits for no process, and makes no file; empty: it can't be read.
  static func files(in folder: String) -> [String] {
    let entries = try? entries(Files.read(folder + "/adopted.plist"))
    return entries?.map(\.file) ?? []
  }

  private static func entries(_ bytes: [UInt8]) throws(Errno) -> [Entry] {
    guard !bytes.isEmpty else { return [] }
    guard case .array(let values)? = PropertyLists().value(xml: bytes) else { throw .EINVAL }
    return try values.map { (value) throws(Errno) in
      guard case .dictionary(let members) = value, case .string(let file)? = members["file"],
        case .string(let target)? = members["target"], case .string(let link)? = members["link"],
        case .integer(let permissions)? = members["permissions"]
      else { throw .EINVAL }
      return Entry(
        file: file.string, target: target.string, link: link.string,
        permissions: UInt32(truncatingIfNeeded: permissions) & 0o7777)
    }
  }

  /// Returns when it is on the disk. - Throws: `Failure`.
  mutating func add(_ entry: Entry) throws {
    try write(entries.filter { $0.file != entry.file } + [entry])
  }

  mutating func remove(_ file: String) throws { try write(entries.filter { $0.file != file }) }

  private mutating func write(_ new: [Entry]) throws {
    let values = new.map { entry in
      SettingValue.dictionary([
        "file": .string(ExactString(entry.file)), "target": .string(ExactString(entry.target)),
        "link": .string(ExactString(entry.link)), "permissions": .integer(Int128(entry.permissions)),
      ])
    }
    let bytes: [UInt8]
    do throws(StoreError) { bytes = try PropertyLists().xml(.array(values)) } catch {
      throw Failure(path, error)
    }
    let temporary = path + ".new"
    do throws(Errno) {
      try Files.remove(temporary)
      let file = try Descriptor(temporary, [.writing, .create, .exclusive, .noFollow])
      try file.write(bytes)
      try file.synchronize()
      try Files.rename(temporary, to: path)
      try Files.synchronizeFolder(folder)
    } catch {
      _ = try? Files.remove(temporary)
      throw Failure(path, "it can't be written: \(error)")
    }
    entries = new
  }
}
