public import Dispatch

/// A value that one queue reads and writes.
///
/// Reading and writing are two steps: `asyncAccess(transform:)` does both in one.
@available(swift, deprecated: 5.5, message: "use an actor")
@propertyWrapper
public final class Serialized<Value>: @unchecked Sendable {
  // Everything is used on the queue only.
  private let queue: DispatchQueue
  private var value: Value
  private var observer: ((Value) -> Void)?

  /// Uses a new serial queue with the label `Serialized`.
  public convenience init(wrappedValue: Value) {
    self.init(wrappedValue: wrappedValue, customQueue: "Serialized")
  }

  /// Uses the given queue, which must be serial.
  public init(wrappedValue: Value, customQueue queue: DispatchQueue) {
    self.queue = queue
    value = wrappedValue
  }

  /// Uses a new serial queue with the given label.
  public convenience init(wrappedValue: Value, customQueue label: String) {
    self.init(wrappedValue: wrappedValue, customQueue: DispatchQueue(label: label))
  }

  /// The value, read and written by `sync` on the queue: using it on that queue is a deadlock.
  public var wrappedValue: Value {
    get { queue.sync { value } }
    set { queue.sync { set(newValue) } }
  }

  /// Is called on the queue after each change; it must not use the property.
  public var didSet: ((Value) -> Void)? {
    get { queue.sync { observer } }
    set { queue.sync { observer = newValue } }
  }

  /// Changes the value in one step, on the queue, after this call has returned.
  public func asyncAccess(transform: @escaping (Value) -> Value) {
    // SAFETY: the caller gives the closure up to the queue, as it always had to.
    nonisolated(unsafe) let transform = transform
    queue.async { self.set(unsafe transform(self.value)) }
  }

  private func set(_ newValue: Value) {
    value = newValue
    observer?(newValue)
  }
}
