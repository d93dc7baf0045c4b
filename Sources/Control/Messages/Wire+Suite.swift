import Model
import Store

extension WireWriter {
  mutating func put(_ request: SuiteRequest) {
    switch request {
    case .list: put(1 as UInt8)
    case .stamp(let suite): put(2, suite)
    case .contents(let suite): put(3, suite)
    case .change(let suite, let stamp, let edits):
      put(4, suite)
      put(stamp)
      put(edits) { $0.put($1) }
    case .create(let suite): put(5, suite)
    case .remove(let suite): put(6, suite)
    case .rename(let suite, let name):
      put(7, suite)
      put(name)
    case .readOnlyReason(let suite): put(8, suite)
    case .problems: put(9 as UInt8)
    case .room: put(10 as UInt8)
    case .layers: put(11 as UInt8)
    case .history(let request):
      put(12 as UInt8)
      put(request)
    case .origin(let suite, let key):
      put(13, suite)
      put(key)
    case .isStale: put(14 as UInt8)
    case .watch: put(15 as UInt8)
    case .reset(let suite, let key):
      put(16, suite)
      put(key) { $0.put($1) }
    }
  }

  private mutating func put(_ code: UInt8, _ suite: ExactString) {
    put(code)
    put(suite)
  }

  mutating func put(_ reply: SuiteReply) {
    switch reply {
    case .list(let suites):
      put(1 as UInt8)
      put(suites) {
        $0.put($1.name)
        $0.put($1.stamp)
      }
    case .stamp(let stamp):
      put(2 as UInt8)
      put(stamp) { $0.put($1) }
    case .contents(let record):
      put(3 as UInt8)
      put(record) { writer, record in
        writer.put(record.settings) { $0.put($1) }
        writer.put(record.stamp) { $0.put($1) }
        writer.put(record.readOnly) { $0.put($1) }
      }
    case .readOnly(let reason):
      put(4 as UInt8)
      put(reason) { $0.put($1) }
    case .layers(let names, let written):
      put(5 as UInt8)
      put(names) { $0.put($1) }
      put(written)
    case .history(let reply):
      put(6 as UInt8)
      put(reply)
    case .origin(let layer):
      put(7 as UInt8)
      put(layer) { $0.put($1) }
    case .isStale(let isStale):
      put(8 as UInt8)
      put(isStale) { $0.put($1) }
    case .changed(let suites):
      put(9 as UInt8)
      put(suites) { $0.put($1) { $0.put($1) } }
    case .reset(let count):
      put(10 as UInt8)
      put(UInt32(clamping: count))
    }
  }

  private mutating func put(_ edit: SuiteEdit) {
    put(edit.key)
    put(edit.value) { $0.put($1) }
    put(edit.modified) { $0.put($1) }
  }

  private mutating func put(_ stamp: SuiteStamp) {
    put(stamp.device)
    put(stamp.number)
    put(stamp.size)
    put(stamp.modified)
    put(stamp.journal) {
      $0.put($1.size)
      $0.put($1.modified)
    }
  }

  mutating func put(_ value: SettingValue) {
    switch value {
    case .string(let text): put(1, text)
    case .integer(let number):
      put(2 as UInt8)
      put(number)
    case .real(let number):
      put(3 as UInt8)
      put(number.bitPattern)
    case .bool(let flag):
      put(4 as UInt8)
      put(flag)
    case .date(let date):
      put(5 as UInt8)
      put(date.seconds)
    case .data(let bytes):
      put(6 as UInt8)
      put(bytes[...])
    case .uid(let number):
      put(7 as UInt8)
      put(number)
    case .array(let items):
      put(8 as UInt8)
      put(items) { $0.put($1) }
    case .dictionary(let entries):
      put(9 as UInt8)
      put(Array(entries)) {
        $0.put($1.key)
        $0.put($1.value)
      }
    }
  }
}

extension WireReader {
  mutating func suiteRequest() throws(StoreError) -> SuiteRequest {
    switch try integer(UInt8.self) {
    case 1: .list
    case 2: .stamp(try name())
    case 3: .contents(try name())
    case 4: .change(try name(), from: try stamp(), try edits())
    case 5: .create(try name())
    case 6: .remove(try name())
    case 7: .rename(try name(), to: try name())
    case 8: .readOnlyReason(try name())
    case 9: .problems
    case 10: .room
    case 11: .layers
    case 12: .history(try suiteHistoryRequest())
    case 13: .origin(try name(), key: try name())
    case 14: .isStale
    case 15: .watch
    case 16: .reset(try name(), key: try optional { (reader) throws(StoreError) in try reader.name() })
    default: throw Self.unreadable
    }
  }

  mutating func suiteReply() throws(StoreError) -> SuiteReply {
    switch try integer(UInt8.self) {
    case 1:
      .list(
        try list { (reader) throws(StoreError) in
          ListedSuite(name: try reader.name(), stamp: try reader.stamp())
        })
    case 2: .stamp(try optional { (reader) throws(StoreError) in try reader.stamp() })
    case 3: .contents(try optional { (reader) throws(StoreError) in try reader.record() })
    case 4: .readOnly(try optional { (reader) throws(StoreError) in try reader.text() })
    case 5:
      .layers(try list { (reader) throws(StoreError) in try reader.text() }, written: try text())
    case 6: .history(try suiteHistoryReply())
    case 7: .origin(try optional { (reader) throws(StoreError) in try reader.text() })
    case 8: .isStale(try optional { (reader) throws(StoreError) in try reader.flag() })
    case 9:
      .changed(
        try optional { (reader) throws(StoreError) in
          try reader.list { (reader) throws(StoreError) in try reader.name() }
        })
    case 10: .reset(Int(try integer(UInt32.self)))
    default: throw Self.unreadable
    }
  }

  private mutating func record() throws(StoreError) -> SuiteRecord {
    SuiteRecord(
      settings: try edits(), stamp: try optional { (reader) throws(StoreError) in try reader.stamp() },
      readOnly: try optional { (reader) throws(StoreError) in try reader.text() })
  }

  private mutating func edits() throws(StoreError) -> [SuiteEdit] {
    try list { (reader) throws(StoreError) in
      SuiteEdit(
        key: try reader.name(),
        value: try reader.optional { (reader) throws(StoreError) in try reader.value(depth: 0) },
        modified: try reader.optional { (reader) throws(StoreError) in try reader.time() })
    }
  }

  private mutating func stamp() throws(StoreError) -> SuiteStamp {
    let (device, number) = (try integer(UInt64.self), try integer(UInt64.self))
    return SuiteStamp(
      device: device, number: number, size: try integer(), modified: try time(),
      journal: try optional { (reader) throws(StoreError) in
        JournalStamp(size: try reader.integer(), modified: try reader.time())
      })
  }

  /// As many arrays and dictionaries inside each other as a property list may have.
  private static let deepest = 512

  mutating func value(depth: Int) throws(StoreError) -> SettingValue {
    guard depth <= Self.deepest else { throw Self.unreadable }
    switch try integer(UInt8.self) {
    case 1: return .string(try name())
    case 2:
      let number = try integer(Int128.self)
      guard SettingValue.integers.contains(number) else { throw Self.unreadable }
      return .integer(number)
    case 3: return .real(Double(bitPattern: try integer(UInt64.self)))
    case 4: return .bool(try flag())
    case 5: return .date(SettingDate(seconds: try integer()))
    case 6: return .data(try content())
    case 7: return .uid(try integer())
    case 8:
      return .array(try list { (reader) throws(StoreError) in try reader.value(depth: depth + 1) })
    case 9:
      var entries: [ExactString: SettingValue] = [:]
      for _ in 0..<(try integer(UInt32.self)) { entries[try name()] = try value(depth: depth + 1) }
      return .dictionary(entries)
    default: throw Self.unreadable
    }
  }
}
