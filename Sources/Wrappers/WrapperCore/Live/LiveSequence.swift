/// The values of a wrapper, beginning with the present one: `for await x in $x.values`.
///
/// Each iteration begins with the value of that moment and ends when it is dropped or its task is cancelled.
public struct LiveSequence<Element>: AsyncSequence {
  /// Iterating never fails.
  public typealias Failure = Never
  private let follow: (Outlet<Element>) -> Listening

  package init(_ follow: @escaping (Outlet<Element>) -> Listening) {
    self.follow = follow
  }

  /// One iteration. It is not to be shared by tasks.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var base: AsyncStream<Passed<Element>>.Iterator

    /// The next value; it suspends until there is one. nil: the task was cancelled.
    public mutating func next() async -> Element? {
      await base.next()?.value
    }
  }

  /// Begins an iteration, and with it the observation of the value.
  public func makeAsyncIterator() -> AsyncIterator {
    let (stream, continuation) = AsyncStream<Passed<Element>>.makeStream()
    let outlet = Outlet<Element>(demand: nil) { value in
      continuation.yield(Passed(value: value))
      return nil
    }
    let listening = follow(outlet)
    continuation.onTermination = { _ in
      listening.cancel()
      outlet.close()
    }
    return AsyncIterator(base: stream.makeAsyncIterator())
  }
}

// The closure is made by this package of things that may be used from anywhere.
extension LiveSequence: @unchecked Sendable where Element: Sendable {}

/// A value that goes to another thread though its type does not promise that it may: one that was decoded for
/// its reader, or a function that uses nothing but what is behind locks.
package struct Passed<Value>: @unchecked Sendable {
  package let value: Value

  package init(value: Value) {
    self.value = value
  }
}

@available(*, unavailable)
extension LiveSequence.AsyncIterator: Sendable {}

extension LiveValue {
  package var sequence: LiveSequence<Value> {
    LiveSequence { [self] outlet in follow(outlet) }
  }
}
