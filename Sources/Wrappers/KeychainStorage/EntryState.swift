import FoundationEssentials

/// The state of a property.
struct EntryState<Value: Sendable & Equatable & Codable> {
  /// The value in the property's declaration.
  let first: Value
  private(set) var value: Value
  var writeError: KeychainStorageError?
  private var readError: KeychainStorageError?
  /// Whether the key ever had a value of the type: then nothing means nil, and before that the first value.
  private var wasStored = false
  private var begunLooks: UInt64 = 0
  private var lastLook: UInt64 = 0

  init(first: Value) {
    self.first = first
    value = first
  }

  var error: KeychainStorageError? { writeError ?? readError }

  mutating func noteStored() {
    (readError, writeError) = (nil, nil)
    wasStored = true
  }

  mutating func beginLook() -> UInt64 {
    begunLooks += 1
    return begunLooks
  }

  /// Whether the value is another one than before.
  mutating func endLook(
    _ number: UInt64, _ found: Result<Value?, KeychainStorageError>, orElse fallback: Value?
  ) -> Bool {
    guard number > lastLook else { return false }
    lastLook = number
    switch found {
    case .success(let found):
      readError = nil
      wasStored = wasStored || found != nil
      return adopt(found ?? absent)
    case .failure(let error):
      readError = error
      return fallback.map { adopt($0) } ?? false
    }
  }

  mutating func adopt(_ new: Value) -> Bool {
    defer { value = new }
    return value != new
  }

  /// The value while nothing is stored: of a type without nil the one that was there last.
  private var absent: Value {
    guard Value.self is any OptionalProtocol.Type else { return value }
    return wasStored ? Self.null ?? first : first
  }

  private static var null: Value? { try? JSONDecoder().decode(Value.self, from: Data("null".utf8)) }
}

/// Any optional.
private protocol OptionalProtocol {
  var hasNoValue: Bool { get }
}

extension Optional: OptionalProtocol {
  fileprivate var hasNoValue: Bool { self == nil }
}

extension Equatable {
  /// Whether it is an optional that is nil.
  var isNil: Bool { (self as? any OptionalProtocol)?.hasNoValue ?? false }
}
