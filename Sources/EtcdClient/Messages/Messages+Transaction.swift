extension ClusterTransaction {
  var wire: WireWriter {
    var writer = WireWriter()
    for condition in conditions { writer.message(1, condition.wire) }
    for operation in operations { writer.message(2, operation.wire) }
    for operation in otherwise { writer.message(3, operation.wire) }
    return writer
  }

  /// The servers count each list for itself.
  var longestList: Int { max(conditions.count, operations.count, otherwise.count) }

  /// It can change something.
  package var isChange: Bool {
    (operations + otherwise).contains { if case .read = $0 { false } else { true } }
  }
}

extension KeyCondition {
  /// `Compare`: `result` 1 is EQUAL (0), `target` 2, `key` 3, and the value in the field of the target.
  fileprivate var wire: WireWriter {
    var writer = WireWriter()
    switch self {
    case .version(let key, let version):
      writer.bytes(3, key)
      writer.present(4, version)
    case .created(let key, let revision):
      writer.unsigned(2, 1)
      writer.bytes(3, key)
      writer.present(5, revision)
    case .modified(let key, let revision):
      writer.unsigned(2, 2)
      writer.bytes(3, key)
      writer.present(6, revision)
    case .value(let key, let value):
      writer.unsigned(2, 3)
      writer.bytes(3, key)
      writer.present(7, value)
    }
    return writer
  }
}

extension KeyOperation {
  /// `RequestOp`.
  fileprivate var wire: WireWriter {
    var writer = WireWriter()
    var request = WireWriter()
    switch self {
    case .read(let read): writer.message(1, read.wire)
    case .put(let key, let value, let lease):
      request.bytes(1, key)
      request.bytes(2, value)
      request.signed(3, lease)
      writer.message(2, request)
    case .delete(let range):
      range.write(to: &request)
      writer.message(3, request)
    }
    return writer
  }
}

extension TransactionReply {
  init(_ bytes: [UInt8]) throws(WireError) {
    var reader = WireReader(bytes)
    var header: ClusterHeader?
    var didSucceed = false
    var replies: [WireReader] = []
    while let field = try reader.next() {
      switch field.number {
      case 1: header = try ClusterHeader(try field.message())
      case 2: didSucceed = try field.bool()
      case 3: replies.append(try field.message())
      default: break
      }
    }
    guard let header else { throw .malformed }
    self.init(header: header, didSucceed: didSucceed, values: [])
    for reply in replies { values.append(try Self.values(of: reply, header)) }
  }

  /// `ResponseOp`: one of the replies, of which that of a read alone has values.
  private static func values(of reply: WireReader, _ header: ClusterHeader) throws(WireError) -> [KeyValue] {
    var reply = reply
    guard let field = try reply.next(), (1...3).contains(field.number) else { throw .malformed }
    let message = try field.message()
    return field.number == 1 ? try RangeReply(message, header: header).values : []
  }
}
