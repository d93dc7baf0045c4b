import Glibc

/// A thread of the kernel's own that can be waited for.
struct Thread: Sendable {
  private let thread: pthread_t

  init(_ body: @escaping @Sendable () -> Void) {
    var thread = pthread_t()
    let argument = unsafe Unmanaged.passRetained(Body(run: body)).toOpaque()
    // SAFETY: the body is retained for the thread, which takes it over.
    unsafe pthread_create(
      &thread, nil,
      { argument in
        guard let argument = unsafe argument else { return nil }
        unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
        return nil
      }, argument)
    self.thread = thread
  }

  func join() {
    pthread_join(thread, nil)
  }

  private final class Body: Sendable {
    let run: @Sendable () -> Void

    init(run: @escaping @Sendable () -> Void) {
      self.run = run
    }
  }
}
