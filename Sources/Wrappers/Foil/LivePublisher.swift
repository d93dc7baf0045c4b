import KeyPathObservation
@_exported public import OpenCombine
import WrapperCore

/// The value of a key at once, and then every change of it.
struct LivePublisher<Output>: Publisher {
  typealias Failure = Never
  let live: LiveValue<Output>

  func receive<Downstream: Subscriber>(
    subscriber: Downstream
  ) where Downstream.Input == Output, Downstream.Failure == Never {
    if let probe = subscriber as? ErrorProbe<Output> { return probe.answer(live.error) }
    let subscription = OutletSubscription(subscriber)
    subscription.follow(live.follow)
    subscriber.receive(subscription: subscription)
  }
}

/// Hands an outlet's values to a subscriber, as many as it demands.
final class OutletSubscription<Downstream: Subscriber>: Subscription, CustomCombineIdentifierConvertible
where Downstream.Failure == Never {
  private let outlet: Outlet<Downstream.Input>
  private let end = Guarded<(() -> Void)?>(nil)

  init(_ subscriber: Downstream) {
    outlet = Outlet(demand: 0) { subscriber.receive($0).max }
  }

  func follow(_ follow: (Outlet<Downstream.Input>) -> Listening) {
    let listening = follow(outlet)
    end.withLock { $0 = listening.cancel }
  }

  /// Begins an observation; the function that `follow` returns ends it.
  func follow(_ follow: (Outlet<Downstream.Input>) -> () -> Void) {
    let ending = follow(outlet)
    end.withLock { $0 = ending }
  }

  func request(_ demand: Subscribers.Demand) { outlet.request(demand.max) }

  func cancel() {
    outlet.close()
    let ending = end.withLock { end in
      defer { end = nil }
      return end
    }
    ending?()
  }
}

/// Asks a wrapper's publisher, also a type-erased one, for the reason of its fallback.
private final class ErrorProbe<Input>: Subscriber {
  typealias Failure = Never
  private(set) var error: (any Error)?

  func answer(_ error: (any Error)?) { self.error = error }
  /// The question reached a publisher of another kind.
  func receive(subscription: any Subscription) { subscription.cancel() }
  func receive(_ input: Input) -> Subscribers.Demand { .none }
  func receive(completion: Subscribers.Completion<Never>) {}
}

extension AnyPublisher where Failure == Never {
  /// Of a wrapper's `$property`: why the last write failed, or else why what is stored does not read as the
  /// property's type; nil: there is no error.
  public var error: (any Error)? {
    let probe = ErrorProbe<Output>()
    receive(subscriber: probe)
    return probe.error
  }
}
