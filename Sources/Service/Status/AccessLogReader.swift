package import Control
package import Model
import Platform
import Store
import Suites

/// Reads the record of accesses as lines for `keyhole log`.
package final class AccessLogReader {
  package enum Form: Sendable {
    /// The object of each access, with the path of the item, and `allow`, the command that lets a browser of files in.
    case json
    /// Time, decision, path, program and process, terminal and parents, a tab between; of a browser of files the command that lets
    /// it in.
    case columns
  }

  private let log: AccessLog
  private let form: Form
  private let path: (ItemID) -> String
  private let codec = SettingCodec(propertyLists: PropertyLists())
  /// How much of the file with which inode was read.
  private var (inode, offset): (UInt64, Int) = (0, 0)

  /// `path`: the present path of an item, or what stands in its place.
  package init(_ log: AccessLog, as form: Form, path: @escaping (ItemID) -> String) {
    (self.log, self.form, self.path) = (log, form, path)
  }

  /// All lines, the older ones first.
  package func allLines() -> [String] {
    lines(in: Self.bytes(log.olderPath, from: 0).bytes) + newLines()
  }

  /// The lines since the last call; of a file that became the older one meanwhile the rest too.
  package func newLines() -> [String] {
    let status = try? Files.status(log.path)
    let isNew = status.map { $0.id.inode != inode } ?? false
    let rest = isNew && inode != 0 ? lines(in: Self.bytes(log.olderPath, from: offset).bytes) : []
    if isNew { offset = 0 }
    let (bytes, found) = Self.bytes(log.path, from: offset)
    // A line that is being written is for the next time.
    let complete = bytes.lastIndex(of: 0x0A).map { bytes[...$0] } ?? []
    (inode, offset) = (found, offset + complete.count)
    return rest + lines(in: Array(complete))
  }

  private func lines(in bytes: [UInt8]) -> [String] {
    bytes.split(separator: 0x0A).compactMap { line in
      guard case .dictionary(let fields)? = try? codec.value(of: Array(line), as: .dictionary) else {
        return nil
      }
      return self.line(String(decoding: line, as: UTF8.self), fields)
    }
  }

  private func line(_ text: String, _ fields: [ExactString: SettingValue]) -> String {
    var path: String?
    if case .string(let id)? = fields["item"] { path = self.path(ItemID(rawValue: id.string)) }
    var view: String?
    if case .string(let id)? = fields["view"] { view = self.path(ItemID(rawValue: id.string)) }
    let allow = Self.allowCommand(fields, path)
    switch form {
    case .json:
      let added = [("path", path), ("through", view), ("allow", allow)].compactMap { name, value in
        value.map { ",\"\(name)\":\($0.quotedAsJSON)" }
      }
      return added.isEmpty ? text : "\(text.dropLast())\(added.joined())}"
    case .columns:
      // The path is the item's; which of its secrets is said where it is not the main one alone.
      if case .string(let secret)? = fields["secret"] { path = path.map { "\($0) (\(secret))" } }
      if let view { path = path.map { "\($0) (in \(view))" } }
      return Self.columns(fields, path ?? "-", allow)
    }
  }

  /// The command that lets a browser of files in, which was refused without a question; nil: it was no such access, or the item is
  /// not there any more.
  private static func allowCommand(_ fields: [ExactString: SettingValue], _ path: String?) -> String? {
    guard fields["decision"] == .string("browsing"), case .string(let program)? = fields["program"],
      program.string.hasPrefix("/"), let path, path.hasPrefix("keychain/")
    else { return nil }
    return "keyhole allow \(program.string.quotedForShell) \(path.quotedForShell)"
  }

  private static func columns(
    _ fields: [ExactString: SettingValue], _ path: String, _ allow: String?
  ) -> String {
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
    var program = word("script") == "-" ? word("program") : "\(word("program")) \(word("script"))"
    if case .string(let started)? = fields["starts"] { program += " run \(started.string)" }
    let columns = [
      word("time"), word("decision"), path, "\(program) (\(word("pid")))", word("terminal"),
      word("parents"),
    ]
    return (columns + (allow.map { [$0] } ?? [])).map(\.escapedForTerminal).joined(separator: "\t")
  }

  private static func bytes(_ path: String, from offset: Int) -> (bytes: [UInt8], inode: UInt64) {
    guard let file = try? Descriptor(path, [.reading, .noFollow]), let status = try? file.status else {
      return ([], 0)
    }
    let length = max(0, min(Int(clamping: status.size), 4 * AccessLog.limit) - offset)
    return ((try? file.read(length, at: Int64(offset))) ?? [], status.id.inode)
  }
}
