import ArgumentParser
import Control
import Dispatch
import Model
import Notifier
import Platform
import Service
import Store
import Suites
import Synchronization
import Tree

struct LogCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "log", abstract: "Print who opened which secret, and how it was decided.",
    discussion: """
      Accesses to items with access flags or rules are recorded, with --all to every item. One line an access, a tab between: time, decision, path, program and process, terminal, and the processes \
      above it. Decisions are allowed, approved and reused (a person agreed, or had a moment before), refused, \
      denied (by rules), closed (refused too often), rejected, timedOut, withdrawn, impossible (no prompt was \
      available) and locked. No value is in it, and no command line. The newest lines are kept, some ten thousand.
      """)

  @Flag(help: "Keep running, and print accesses as they happen.")
  var follow = false

  @Flag(help: "JSON, one object a line.")
  var json = false

  @Flag(help: "Stop recording accesses. This command itself is recorded.")
  var off = false

  @Flag(help: "Record accesses to items with access flags or rules, as by default.")
  var on = false

  @Flag(help: "Record accesses to every item. Opening a secret takes several times as long then.")
  var all = false

  func validate() throws {
    let switches = [off, on, all].filter { $0 }.count
    if switches > 1 || switches == 1 && (follow || json) {
      throw ValidationError("--off, --on and --all go alone")
    }
  }

  func run() throws {
    let places = try StoragePaths.current()
    let log = AccessLog(stateFolder: places.state)
    if off || on || all { return try turn(log, places) }
    guard follow else { return LogReader(log, json: json, ItemNames(places)).printAll() }
    UserFolders.make(places.state)
    let news = DispatchSemaphore(value: 0)
    let watch = FolderWatch(places.state) { _ in news.signal() }
    let reader = LogReader(log, json: json, ItemNames(places))
    withExtendedLifetime(watch) {
      while true {
        reader.printNew()
        news.wait()
      }
    }
  }

  private func turn(_ log: AccessLog, _ places: StoragePaths) throws {
    let event = AccessEvent(
      .record, nil, by: Caller.current.identity(), all ? .all : on ? .on : .off, at: .now)
    UserFolders.make(places.state)
    do { try log.note(all ? .everything : on ? .guarded : .nothing) } catch {
      throw Failure(log.path, "\(error)")
    }
    log.note(event)
  }
}

/// The present names of the items in the record; deleted ones have their numbers only.
private final class ItemNames {
  private let mounts: MountNames
  private lazy var session = try? TreeSession(for: TreePath("keychain"))
  private var known: [ItemID: String] = [:]

  init(_ places: StoragePaths) {
    mounts = MountNames(runtimeFolder: places.runtime)
  }

  func path(of item: ItemID) -> String {
    if let path = known[item] { return path }
    let path = mounts.path(of: item) ?? ownPath(of: item) ?? item.rawValue
    known[item] = path
    return path
  }

  private func ownPath(of item: ItemID) -> String? {
    (try? session?.tree.path(of: item)) ?? nil
  }
}

/// Prints the record, as it is or for people.
private final class LogReader {
  private let log: AccessLog
  private let isJSON: Bool
  private let codec = SettingCodec(propertyLists: PropertyLists())
  private let names: ItemNames
  /// How much of the file with which inode was printed.
  private var (inode, offset): (UInt64, Int) = (0, 0)

  init(_ log: AccessLog, json: Bool, _ names: ItemNames) {
    (self.log, isJSON, self.names) = (log, json, names)
  }

  func printAll() {
    show(Self.bytes(log.olderPath, from: 0).bytes)
    printNew()
  }

  /// Prints the lines since the last call; of a file that became the older one meanwhile the rest too.
  func printNew() {
    let status = try? Files.status(log.path)
    let isNew = status.map { $0.id.inode != inode } ?? false
    if isNew, inode != 0 { show(Self.bytes(log.olderPath, from: offset).bytes) }
    if isNew { offset = 0 }
    let (bytes, found) = Self.bytes(log.path, from: offset)
    // A line that is being written is for the next time.
    let complete = bytes.lastIndex(of: 0x0A).map { bytes[...$0] } ?? []
    (inode, offset) = (found, offset + complete.count)
    show(Array(complete))
  }

  private func show(_ bytes: [UInt8]) {
    for line in bytes.split(separator: 0x0A) {
      guard case .dictionary(let fields)? = try? codec.value(of: Array(line), as: .dictionary) else {
        continue
      }
      var path: String?
      if case .string(let id)? = fields["item"] { path = names.path(of: ItemID(rawValue: id.string)) }
      // The path is the item's; which of its secrets is said where it is not the main one alone.
      if case .string(let secret)? = fields["secret"], !isJSON { path = path.map { "\($0) (\(secret))" } }
      let line = String(decoding: line, as: UTF8.self)
      StandardOutput.print(isJSON ? Self.named(line, path) : Self.text(fields, path ?? "-"))
    }
  }

  private static func named(_ line: String, _ path: String?) -> String {
    path.map { "\(line.dropLast()),\"path\":\($0.quotedAsJSON)}" } ?? line
  }

  private static func text(_ fields: [ExactString: SettingValue], _ path: String) -> String {
    let word = { (name: ExactString) -> String in
      switch fields[name] {
      case .string(let text)?: text.string
      case .integer(let number)?: "\(number)"
      case .array(let values)?:
        values.compactMap { if case .string(let text) = $0 { text.string } else { nil } }.joined(
          separator: " < ")
      default: "-"
      }
    }
    let program = word("script") == "-" ? word("program") : "\(word("program")) \(word("script"))"
    let columns = [
      word("time"), word("decision"), path, "\(program) (\(word("pid")))", word("terminal"),
      word("parents"),
    ]
    return columns.map(\.escapedForTerminal).joined(separator: "\t")
  }

  private static func bytes(_ path: String, from offset: Int) -> (bytes: [UInt8], inode: UInt64) {
    guard let file = try? Descriptor(path, [.reading, .noFollow]), let status = try? file.status else {
      return ([], 0)
    }
    let length = max(0, min(Int(clamping: status.size), 4 * AccessLog.limit) - offset)
    return ((try? file.read(length, at: Int64(offset))) ?? [], status.id.inode)
  }
}
