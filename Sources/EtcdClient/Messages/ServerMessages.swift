// Messages about a server, a login and leases.

/// The state of one server, as it says itself (`StatusResponse`).
package struct MemberStatus: Hashable, Sendable {
  package var header = ClusterHeader(cluster: 0, member: 0, revision: 0, term: 0)
  /// Of the program: `3.4.23`.
  package var version = ""
  /// Bytes of its file, those that are free inside it included.
  package var fileSize: Int64 = 0
  /// The member that leads; 0: it knows none.
  package var leader: UInt64 = 0
  /// Alarms and other messages.
  package var errors: [String] = []
  /// A member that has no vote, and answers nothing but this.
  package var isLearner = false
}

extension MemberStatus {
  init(_ bytes: [UInt8]) throws(WireError) {
    var reader = WireReader(bytes)
    header = try ClusterHeader(ofReply: bytes)
    while let field = try reader.next() {
      switch field.number {
      case 2: version = try field.text()
      case 3: fileSize = try field.signed()
      case 4: leader = try field.unsigned()
      case 8: errors.append(try field.text())
      case 10: isLearner = try field.bool()
      default: break
      }
    }
  }
}

/// A lease that was granted, or kept alive.
package struct ClusterLease: Hashable, Sendable {
  package var id: Int64 = 0
  /// Seconds until it ends unless it is kept alive.
  package var seconds: Int64 = 0

  package init(id: Int64, seconds: Int64) {
    (self.id, self.seconds) = (id, seconds)
  }
}

extension ClusterLease {
  /// The reply to a grant or to a request to keep one alive, which have the same fields.
  init(_ bytes: [UInt8]) throws(WireError) {
    var reader = WireReader(bytes)
    while let field = try reader.next() {
      switch field.number {
      case 2: id = try field.signed()
      case 3: seconds = try field.signed()
      default: break
      }
    }
    guard id != 0 else { throw .malformed }
  }

  static func grant(seconds: Int64) -> WireWriter {
    var writer = WireWriter()
    writer.signed(1, seconds)
    return writer
  }

  /// To keep it alive, or to revoke it.
  static func request(_ id: Int64) -> WireWriter {
    grant(seconds: id)
  }
}

/// The reply to `Authenticate`.
struct LoginReply {
  private(set) var token = ""

  init(_ bytes: [UInt8]) throws(WireError) {
    var reader = WireReader(bytes)
    while let field = try reader.next() {
      if field.number == 2 { token = try field.text() }
    }
    // It becomes a header of HTTP.
    guard !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { throw .malformed }
  }
}
