// The names of Foundation's key-value observing, which it does not have on Linux.
import WrapperCore

/// The values that a handler of `observe` gets, as on Apple's platforms.
public struct NSKeyValueObservingOptions: OptionSet, Sendable {
  /// The bits of the options, with the numbers of Foundation's type on Apple's platforms.
  public let rawValue: UInt

  /// Options of these bits; unknown bits have no effect.
  public init(rawValue: UInt) {
    self.rawValue = rawValue
  }

  /// The change has the new value.
  public static let new = NSKeyValueObservingOptions(rawValue: 1)
  /// The change has the value before.
  public static let old = NSKeyValueObservingOptions(rawValue: 2)
  /// The handler is called at once, with the value of that moment.
  public static let initial = NSKeyValueObservingOptions(rawValue: 4)
  /// The handler is called before each change, too.
  public static let prior = NSKeyValueObservingOptions(rawValue: 8)
}

/// The kind of a change; here always `setting`.
public enum NSKeyValueChange: UInt, Sendable {
  case setting = 1
  case insertion
  case removal
  case replacement
}

/// One change of an observed property.
public struct NSKeyValueObservedChange<Value> {
  /// The name that Foundation's type has for `NSKeyValueChange`.
  public typealias Kind = NSKeyValueChange

  /// Always `setting`: collections are reported as whole values.
  public let kind: Kind
  /// With the option `new`.
  public let newValue: Value?
  /// With the option `old`.
  public let oldValue: Value?
  /// The call that the option `prior` asks for.
  public let isPrior: Bool
}

extension NSKeyValueObservedChange: Sendable where Value: Sendable {}

/// An observation; it ends when it is invalidated or dropped.
public final class NSKeyValueObservation: Sendable {
  private let listening: Listening

  init(_ end: @escaping @Sendable () -> Void) {
    listening = Listening(end)
  }

  /// Ends the observation: the handler is not called again.
  public func invalidate() { listening.cancel() }
}
