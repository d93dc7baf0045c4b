public import KeyPathObservation
public import Observation
public import OpenCombine
import WrapperCore

/// The values of a property of an object.
public struct KeyPathPublisher<Root: AnyObject, Output>: Publisher {
  /// Publishing never fails.
  public typealias Failure = Never
  /// The observed object. The publisher and its subscriptions keep it.
  public let object: Root
  /// The property that is published.
  public let keyPath: KeyPath<Root, Output>
  /// `initial` publishes the value at once, `prior` the old value before each change as well.
  public let options: NSKeyValueObservingOptions

  /// Observes the property until the subscription is cancelled, and delivers values on the thread of the change.
  public func receive<Downstream: Subscriber>(
    subscriber: Downstream
  ) where Downstream.Input == Output, Downstream.Failure == Never {
    let subscription = OutletSubscription(subscriber)
    subscription.follow { outlet in
      let observation = keyPathObservation(object, keyPath, options.union(.new)) { _, change in
        if let value = change.isPrior ? change.oldValue : change.newValue { outlet.append(value) }
        outlet.drain()
      }
      return { [object] in
        observation.invalidate()
        _ = object
      }
    }
    subscriber.receive(subscription: subscription)
  }
}

extension KeyPathObservable {
  /// Publishes a property: with `initial` at once, and after each change of it.
  public func publisher<Value>(
    for keyPath: KeyPath<Self, Value>, options: NSKeyValueObservingOptions = [.initial, .new]
  ) -> KeyPathPublisher<Self, Value> {
    KeyPathPublisher(object: self, keyPath: keyPath, options: options)
  }
}

extension Observable where Self: AnyObject {
  /// Publishes a property: with `initial` at once, and after each change of it.
  @_disfavoredOverload
  public func publisher<Value>(
    for keyPath: KeyPath<Self, Value>, options: NSKeyValueObservingOptions = [.initial, .new]
  ) -> KeyPathPublisher<Self, Value> {
    KeyPathPublisher(object: self, keyPath: keyPath, options: options)
  }
}
