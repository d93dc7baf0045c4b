/// A request of a stream of watches.
enum WatchRequest {
  /// Fragments are allowed, and the servers report progress by themselves. `revision` 0: from the present one on.
  case create(KeyRange, from: Int64)
  /// Asks for the revision up to which everything was sent.
  case progress

  var wire: WireWriter {
    var writer = WireWriter()
    var request = WireWriter()
    switch self {
    case .create(let range, let revision):
      range.write(to: &request)
      request.signed(3, revision)
      request.bool(4, true)
      request.bool(8, true)
      writer.message(1, request)
    case .progress: writer.message(3, request)
    }
    return writer
  }
}

/// A reply on a stream of watches.
struct WatchReply {
  var header = ClusterHeader(cluster: 0, member: 0, revision: 0, term: 0)
  /// -1: it is about the stream.
  var watch: Int64 = 0
  var isCreated = false
  var isCancelled = false
  /// More than 0: what was asked for is not kept any more; the oldest revision that is.
  var oldest: Int64 = 0
  var reason = ""
  /// More events of the same reply follow.
  var isFragment = false
  var changes: [KeyChange] = []
}

extension WatchReply {
  init(_ bytes: [UInt8]) throws(WireError) {
    var reader = WireReader(bytes)
    var hasHeader = false
    while let field = try reader.next() {
      switch field.number {
      case 1:
        header = try ClusterHeader(try field.message())
        hasHeader = true
      case 2: watch = try field.signed()
      case 3: isCreated = try field.bool()
      case 4: isCancelled = try field.bool()
      case 5: oldest = try field.signed()
      case 6: reason = try field.text().withoutControlCharacters
      case 7: isFragment = try field.bool()
      case 11: changes.append(try KeyChange(try field.message()))
      default: break
      }
    }
    guard hasHeader else { throw .malformed }
  }
}

extension KeyChange {
  /// The revision of the change.
  var revision: Int64 {
    switch self {
    case .put(let value): value.modified
    case .delete(_, let modified): modified
    }
  }

  /// `Event`: `type` 1 is PUT (0) or DELETE (1), `kv` 2.
  fileprivate init(_ reader: WireReader) throws(WireError) {
    var reader = reader
    var (type, value): (UInt64, KeyValue?) = (0, nil)
    while let field = try reader.next() {
      switch field.number {
      case 1: type = try field.unsigned()
      case 2: value = try KeyValue(try field.message())
      default: break
      }
    }
    guard let value, type <= 1 else { throw .malformed }
    self = type == 0 ? .put(value) : .delete(key: value.key, modified: value.modified)
  }
}
