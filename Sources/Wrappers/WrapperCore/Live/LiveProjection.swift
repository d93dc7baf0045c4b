/// The value of `$property`: its changes, and the last error.
public struct LiveProjection<Value> {
  private let current: () -> Value
  private let problem: () -> (any Error)?
  private let sequence: LiveSequence<Value>

  package init(
    value: @escaping () -> Value, error: @escaping () -> (any Error)?, values: LiveSequence<Value>
  ) {
    current = value
    problem = error
    sequence = values
  }

  package init(_ live: LiveValue<Value>) {
    self.init(value: { live.value }, error: { live.error }, values: live.sequence)
  }

  /// The value now.
  public var value: Value { current() }

  /// Why the last write failed, or else why the stored value does not read as the property's type; nil: neither is so.
  public var error: (any Error)? { problem() }

  /// The value now, and then after every change from anywhere.
  public var values: LiveSequence<Value> { sequence }
}

// The closures are made by this package of things that may be used from anywhere.
extension LiveProjection: @unchecked Sendable where Value: Sendable {}
