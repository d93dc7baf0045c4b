// Messages of etcd's API v3 (`etcdserverpb` and `mvccpb`): what reading sends and gets.

extension KeyRange {
  /// The bytes of `range_end`: a prefix of 0xFF alone ends with the last of all keys.
  private var wireEnd: [UInt8] {
    guard let end else { return [] }
    return end.isEmpty ? [0] : end
  }

  /// `key` 1 and `range_end` 2, as all requests have them. An empty start is the first of all keys.
  func write(to writer: inout WireWriter) {
    writer.bytes(1, start.isEmpty && end != nil ? [0] : start)
    writer.bytes(2, wireEnd)
  }
}

extension RangeRequest {
  var wire: WireWriter {
    var writer = WireWriter()
    range.write(to: &writer)
    writer.signed(3, limit)
    writer.signed(4, revision)
    writer.bool(7, !isLinearizable)
    writer.bool(8, isKeysOnly)
    return writer
  }
}

extension RangeReply {
  /// `header`: of the transaction that this is a part of; nil: it has one of its own.
  init(_ reader: WireReader, header known: ClusterHeader? = nil) throws(WireError) {
    var (reader, header) = (reader, known)
    var (values, hasMore, count): ([KeyValue], Bool, Int64) = ([], false, 0)
    while let field = try reader.next() {
      switch field.number {
      case 1: if known == nil { header = try ClusterHeader(try field.message()) }
      case 2: values.append(try KeyValue(try field.message()))
      case 3: hasMore = try field.bool()
      case 4: count = try field.signed()
      default: break
      }
    }
    guard let header else { throw .malformed }
    self.init(header: header, values: values, hasMore: hasMore, count: count)
  }
}

extension ClusterHeader {
  init(_ reader: WireReader) throws(WireError) {
    var reader = reader
    self.init(cluster: 0, member: 0, revision: 0, term: 0)
    while let field = try reader.next() {
      switch field.number {
      case 1: cluster = try field.unsigned()
      case 2: member = try field.unsigned()
      case 3: revision = try field.signed()
      case 4: term = try field.unsigned()
      default: break
      }
    }
    // The next one is computed.
    guard 0..<Int64.max ~= revision else { throw .malformed }
  }

  /// The header of a reply of which nothing else is needed.
  init(ofReply bytes: [UInt8]) throws(WireError) {
    var reader = WireReader(bytes)
    while let field = try reader.next() {
      guard field.number == 1 else { continue }
      self = try ClusterHeader(try field.message())
      return
    }
    throw .malformed
  }
}

extension KeyValue {
  init(_ reader: WireReader) throws(WireError) {
    var reader = reader
    self.init(key: [], value: [], created: 0, modified: 0, version: 0)
    while let field = try reader.next() {
      switch field.number {
      case 1: key = try field.bytes()
      case 2: created = try field.signed()
      case 3: modified = try field.signed()
      case 4: version = try field.signed()
      case 5: value = try field.bytes()
      default: break
      }
    }
    // No key is empty, and no revision of a key is before the first.
    guard !key.isEmpty, 1..<Int64.max ~= modified, 0..<Int64.max ~= version else { throw .malformed }
  }
}
