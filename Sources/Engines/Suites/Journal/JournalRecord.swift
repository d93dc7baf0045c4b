import Model
import Platform
import Store

/// One record of a suite's journal (`SuiteJournal`).
struct JournalRecord: Equatable {
  enum Content: Equatable {
    case commit(JournalCommit)
    case fold(JournalFold)
  }

  /// The moment of the commit, or of the last one that a fold has. It never decreases.
  let time: Timestamp
  let content: Content
}

/// The changes of one commit.
struct JournalCommit: Equatable {
  struct Change: Equatable {
    let key: ExactString
    /// `StableHash` of the value before; nil: there was no such key.
    let before: UInt64?
    /// nil: the key was removed.
    let value: SettingValue?
    /// The key's time, where that is not the moment of the commit.
    var modified: Timestamp?
  }

  let changes: [Change]
}

/// The suite's file was written again, with what the journal held up to an offset.
struct JournalFold: Equatable {
  /// The file that was replaced; in the first record of a journal the same as `to`.
  let from: FileVersion
  let to: FileVersion
  /// The file has all records that end at this offset of the journal or before it.
  let end: UInt64
}

/// A version of a suite's file, by what a copy of it keeps. Each version that this engine writes has a time of its own.
struct FileVersion: Equatable {
  let size: Int64
  let modified: Timestamp

  init(_ stamp: SuiteStamp) {
    (size, modified) = (stamp.size, stamp.modified)
  }

  fileprivate init(size: Int64, modified: Timestamp) {
    (self.size, self.modified) = (size, modified)
  }
}

// On disk, all numbers little-endian: a checksum of what follows (`StableHash`), the length of the rest in bytes, the
// kind, and
//   of a commit: the number of changes, for each one its kind, the hash before, the length of the key and the key, and of the
//   kind with a time its seconds and nanoseconds; then
//   the values as a property list, a dictionary by the number of the change;
//   of a fold: two versions (size, seconds, nanoseconds), the offset;
// and at the end the time: seconds, nanoseconds.
extension JournalRecord {
  private static let header = 8 + 4 + 1
  /// The length of the time, which is the last that a record has, in bytes.
  static let timeLength = 8 + 4

  private enum Kind: UInt8 {
    case commit = 1
    case fold = 2
  }

  var bytes: [UInt8] {
    var body = ByteWriter()
    let kind: Kind
    switch content {
    case .commit(let commit):
      kind = .commit
      commit.write(to: &body)
    case .fold(let fold):
      kind = .fold
      fold.write(to: &body)
    }
    body.append(time)
    var rest = ByteWriter()
    rest.append(UInt64(body.bytes.count), size: 4)
    rest.append(UInt64(kind.rawValue), size: 1)
    rest.bytes += body.bytes
    var whole = ByteWriter()
    whole.append(StableHash.of(rest.bytes.span), size: 8)
    return whole.bytes + rest.bytes
  }

  /// The first record, and its length; nil: it is not whole, or of another format.
  static func read(_ bytes: Span<UInt8>) -> (JournalRecord, Int)? {
    var reader = ByteReader(bytes)
    guard let checksum = reader.number(8), let length = reader.number(4), length <= SuiteFile.largest,
      let kind = reader.number(1).flatMap({ Kind(rawValue: UInt8($0)) })
    else { return nil }
    let whole = header + Int(length)
    guard bytes.count >= whole, StableHash.of(bytes.extracting(8..<whole)) == checksum else { return nil }
    guard whole >= header + timeLength,
      let time = time(bytes.extracting(whole - timeLength..<whole)),
      let content = content(bytes.extracting(header..<whole - timeLength), kind)
    else { return nil }
    return (JournalRecord(time: time, content: content), whole)
  }

  private static func content(_ bytes: Span<UInt8>, _ kind: Kind) -> Content? {
    var body = ByteReader(bytes)
    return switch kind {
    case .commit: JournalCommit(&body).map { .commit($0) }
    case .fold: JournalFold(&body).map { .fold($0) }
    }
  }

  /// The time of the record that ends with these bytes.
  static func time(_ bytes: Span<UInt8>) -> Timestamp? {
    var reader = ByteReader(bytes)
    return reader.timestamp()
  }
}

extension JournalCommit {
  private enum Kind: UInt64 {
    /// The key was not there before.
    case added = 0
    case replaced = 1
    case removed = 2
    /// As the first two, with a time of its own.
    case addedWithTime = 3
    case replacedWithTime = 4

    init(_ change: Change) {
      switch (change.value, change.before, change.modified) {
      case (nil, _, _): self = .removed
      case (_, nil, nil): self = .added
      case (_, nil, _): self = .addedWithTime
      case (_, _, nil): self = .replaced
      default: self = .replacedWithTime
      }
    }

    var isNew: Bool { self == .added || self == .addedWithTime }
    var hasTime: Bool { self == .addedWithTime || self == .replacedWithTime }
  }

  fileprivate func write(to writer: inout ByteWriter) {
    writer.append(UInt64(changes.count), size: 4)
    var values: [ExactString: SettingValue] = [:]
    for (number, change) in changes.enumerated() {
      writer.append(Kind(change).rawValue, size: 1)
      writer.append(change.before ?? 0, size: 8)
      writer.append(UInt64(change.key.utf8.count), size: 4)
      writer.bytes += change.key.utf8
      if change.value != nil, let modified = change.modified { writer.append(modified) }
      values[ExactString(String(number))] = change.value
    }
    // As the suite's file will have it.
    writer.bytes += PropertyLists.document(values)
  }

  fileprivate init?(_ reader: inout ByteReader) {
    guard let count = reader.number(4) else { return nil }
    var changes: [Change] = []
    var kinds: [Kind] = []
    for _ in 0..<count {
      guard let kind = reader.number(1).flatMap(Kind.init(rawValue:)), let before = reader.number(8),
        let length = reader.number(4), let key = reader.string(Int(length))
      else { return nil }
      let modified = kind.hasTime ? reader.timestamp() : nil
      guard kind.hasTime == (modified != nil) else { return nil }
      changes.append(Change(key: key, before: kind.isNew ? nil : before, value: nil, modified: modified))
      kinds.append(kind)
    }
    guard case .dictionary(let values)? = try? PropertyLists.read(reader.rest()) else { return nil }
    self.changes = changes.enumerated().map { number, change in
      Change(
        key: change.key, before: change.before, value: values[ExactString(String(number))],
        modified: change.modified)
    }
    guard zip(kinds, self.changes).allSatisfy({ ($0 == .removed) == ($1.value == nil) }) else { return nil }
  }
}

extension JournalFold {
  fileprivate func write(to writer: inout ByteWriter) {
    for version in [from, to] {
      writer.append(UInt64(bitPattern: version.size), size: 8)
      writer.append(version.modified)
    }
    writer.append(end, size: 8)
  }

  fileprivate init?(_ reader: inout ByteReader) {
    guard let from = FileVersion(&reader), let to = FileVersion(&reader), let end = reader.number(8) else {
      return nil
    }
    (self.from, self.to, self.end) = (from, to, end)
  }
}

extension FileVersion {
  fileprivate init?(_ reader: inout ByteReader) {
    guard let size = reader.number(8), let modified = reader.timestamp() else { return nil }
    self.init(size: Int64(bitPattern: size), modified: modified)
  }
}

extension PropertyLists {
  /// As XML where that can say it, else in the binary form.
  fileprivate static func document(_ values: [ExactString: SettingValue]) -> [UInt8] {
    var writer = XMLWriter()
    writer.document(.dictionary(values))
    return writer.isUnwritable ? binary(.dictionary(values)) : writer.bytes
  }
}
