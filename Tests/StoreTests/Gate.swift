import Dispatch

/// Where a thread waits until the test lets it pass.
final class Gate: Sendable {
  private let steps = DispatchSemaphore(value: 0)
  private let isOpen: Bool

  init(isOpen: Bool = false) { self.isOpen = isOpen }

  func pass() { if !isOpen { steps.wait() } }

  func letPass(_ count: Int) { for _ in 0..<count { steps.signal() } }
}
