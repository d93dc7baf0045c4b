public import Foundation
public import Observation
import WrapperCore

/// Objects whose properties can be observed by key paths: every `NSObject`, and classes that conform.
///
/// A property can be observed where it reads wrappers of Keyhole or properties of `@Observable` classes.
public protocol KeyPathObservable: AnyObject {}

extension NSObject: KeyPathObservable {}

extension KeyPathObservable {
  /// Calls a handler after each change of a property, from any process, until the result is dropped.
  ///
  /// The handler runs on the thread that makes or finds the change. Equal values are no change.
  public func observe<Value>(
    _ keyPath: KeyPath<Self, Value>, options: NSKeyValueObservingOptions = [],
    changeHandler: @escaping (Self, NSKeyValueObservedChange<Value>) -> Void
  ) -> NSKeyValueObservation {
    keyPathObservation(self, keyPath, options, changeHandler)
  }
}

extension Observable where Self: AnyObject {
  /// Calls a handler after each change of a property, from any process, until the result is dropped.
  @_disfavoredOverload
  public func observe<Value>(
    _ keyPath: KeyPath<Self, Value>, options: NSKeyValueObservingOptions = [],
    changeHandler: @escaping (Self, NSKeyValueObservedChange<Value>) -> Void
  ) -> NSKeyValueObservation {
    keyPathObservation(self, keyPath, options, changeHandler)
  }
}

package func keyPathObservation<Root: AnyObject, Value>(
  _ root: Root, _ keyPath: KeyPath<Root, Value>, _ options: NSKeyValueObservingOptions,
  _ handler: @escaping (Root, NSKeyValueObservedChange<Value>) -> Void
) -> NSKeyValueObservation {
  let call = { [weak root] (old: Value?, new: Value?, isPrior: Bool) in
    guard let root else { return }
    let change = NSKeyValueObservedChange(
      kind: .setting, newValue: options.contains(.new) && !isPrior ? new : nil,
      oldValue: options.contains(.old) ? old : nil, isPrior: isPrior)
    handler(root, change)
  }
  let outlet = Outlet<KeyPathFollower<Root, Value>.Change>(demand: nil) { change in
    call(change.old, change.new, change.isPrior)
    return nil
  }
  let follower = KeyPathFollower(root, keyPath, tellsPrior: options.contains(.prior), outlet: outlet)
  if options.contains(.initial) { call(nil, follower.first, false) }
  return NSKeyValueObservation { follower.cancel() }
}
