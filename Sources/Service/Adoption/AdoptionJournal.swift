import Model
import Platform
import Store
import Suites

/// Which files were adopted, so that they can be written again: `adopted.plist` in the folder of the state. It holds no value.
struct AdoptionJournal: ~Copyable {
  /// How far an adoption has come, so that the next run goes on there.
  enum Stage: String {
    /// The file has its name; the view or the item may be there in part.
    case making
    /// The link has the file's name.
    case adopted
    /// It was confirmed that the old file is overwritten: it may be so in part.
    case erasing
    /// The file is written again: it may have its name back, and the view and its items may still be there.
    case undoing
    /// The file has its name back; the old one is still there too.
    case undone
  }

  /// The items and the document that were made for a file: their ids, each with the time of its change.
  typealias Made = [String: String]

  struct Entry: Equatable {
    /// The file that became a link.
    var file: String
    /// The path in the tree of what it leads to.
    let target: String
    /// Where the link leads.
    let link: String
    /// The twelve bits of chmod(2) of the file.
    let permissions: UInt32
    var stage = Stage.making
    var made: Made = [:]

    /// The same file, whose view or item has another path by now.
    func moved(to target: String, link: String) -> Entry {
      Entry(file: file, target: target, link: link, permissions: permissions, stage: stage, made: made)
    }
  }

  /// The end of the name of a file whose name a link has taken.
  static let remainsEnding = ".before-keyhole"
  /// The end of the name of a file that is written again, until it has its own name.
  static let undoEnding = ".keyhole-undo"

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

  /// The entries as the journal is now. It waits for no process, and makes no file; empty: it can't be read.
  static func allEntries(in folder: String) -> [Entry] {
    (try? entries(Files.read(folder + "/adopted.plist"))) ?? []
  }

  private static func entries(_ bytes: [UInt8]) throws(Errno) -> [Entry] {
    guard !bytes.isEmpty else { return [] }
    guard case .array(let values)? = PropertyLists().value(xml: bytes) else { throw .EINVAL }
    return try values.map { (value) throws(Errno) in
      guard case .dictionary(let members) = value, case .string(let file)? = members["file"],
        case .string(let target)? = members["target"], case .string(let link)? = members["link"],
        case .integer(let permissions)? = members["permissions"]
      else { throw .EINVAL }
      // Before there were stages, an entry was written when all was made.
      var entry = Entry(
        file: file.string, target: target.string, link: link.string,
        permissions: UInt32(truncatingIfNeeded: permissions) & 0o7777, stage: .adopted)
      if case .string(let stage)? = members["stage"] {
        entry.stage = Stage(rawValue: stage.string) ?? .adopted
      }
      if case .dictionary(let made)? = members["made"] {
        for (id, time) in made {
          if case .string(let time) = time { entry.made[id.string] = time.string }
        }
      }
      return entry
    }
  }

  /// The entry of a file; nil: it was not adopted.
  func entry(of file: String) -> Entry? { entries.last { $0.file == file } }

  /// The entries, once that of a link whose folder has another name by now has its present path.
  ///
  /// - Throws: `Failure`.
  static func entries(in folder: String, following link: String) throws -> [Entry] {
    var journal = try AdoptionJournal(in: folder)
    try journal.follow(link)
    return journal.entries
  }

  /// Where a path is a link as just one adoption has made it, whose own path has nothing now, the entry gets this path.
  mutating func follow(_ path: String) throws {
    guard entry(of: path).map({ $0.stage == .undone }) ?? true, let link = try? Files.target(ofLink: path)
    else { return }
    let moved = entries.filter { entry in
      [.adopted, .erasing, .undoing].contains(entry.stage) && entry.link == link && !Files.hasName(entry.file)
    }
    guard moved.count == 1, var entry = moved.first else { return }
    let former = entry.file
    entry.file = path
    try write(entries.filter { $0.file != former && $0.file != path } + [entry])
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
        "stage": .string(ExactString(entry.stage.rawValue)),
        "made": .dictionary(
          Dictionary(uniqueKeysWithValues: entry.made.map { (ExactString($0), .string(ExactString($1))) })),
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
