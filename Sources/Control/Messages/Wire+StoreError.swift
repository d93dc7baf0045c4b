import Model
import Platform

extension WireWriter {
  mutating func put(_ error: StoreError) {
    if let code = StoreError.plain.firstIndex(of: error) { return put(UInt8(code)) }
    switch error {
    case .invalidName(let reason): put(100, reason)
    case .invalidValue(let reason): put(101, reason)
    case .notPermitted(let reason): put(102, reason)
    case .accessDenied(let reason): put(103, reason)
    case .readOnly(let reason): put(104, reason)
    case .unsupported(let reason): put(105, reason)
    case .unreachable(let reason): put(106, reason)
    case .damaged(let what): put(107, what)
    case .system(let errno, let operation):
      put(108, operation)
      put(errno.rawValue)
    case .tooLarge(let limit):
      put(109, "")
      put(Int64(limit))
    case .notRepresentable(let reason): put(110, reason)
    case .loop(let reason): put(111, reason)
    case .missingPart(let reason): put(112, reason)
    default: put(106, error.message)
    }
  }

  private mutating func put(_ code: UInt8, _ text: String) {
    put(code)
    put(text)
  }
}

extension WireReader {
  mutating func error() throws(StoreError) -> StoreError {
    let code = try integer(UInt8.self)
    if Int(code) < StoreError.plain.count { return StoreError.plain[Int(code)] }
    let text = try name().string
    switch code {
    case 100: return .invalidName(reason: text)
    case 101: return .invalidValue(reason: text)
    case 102: return .notPermitted(reason: text)
    case 103: return .accessDenied(reason: text)
    case 104: return .readOnly(reason: text)
    case 105: return .unsupported(reason: text)
    case 106: return .unreachable(reason: text)
    case 107: return .damaged(what: text)
    case 108: return .system(Errno(rawValue: try integer()), operation: text)
    case 109: return .tooLarge(limit: Int(try integer(Int64.self)))
    case 110: return .notRepresentable(reason: text)
    case 111: return .loop(reason: text)
    case 112: return .missingPart(reason: text)
    default: throw Self.unreadable
    }
  }
}

extension StoreError {
  /// Those without anything in them; each travels as its place in this list.
  fileprivate static let plain: [StoreError] = [
    .notFound, .exists, .notEmpty, .isDirectory, .notDirectory, .nameTooLong, .notUnicode, .locked, .rejected,
    .revoked, .timedOut, .wouldWait, .crossesStores, .noSuchAttribute, .resultTooLarge, .noSpace,
    .tooManyOpen,
    .outOfMemory, .interrupted, .quotaExceeded,
  ]
}
