import Glibc

private final class Work {
  let body: @Sendable () -> Void

  init(_ body: @escaping @Sendable () -> Void) {
    self.body = body
  }
}

/// Does something once on a thread of its own; false if there can't be one.
@discardableResult
func startThread(_ body: @escaping @Sendable () -> Void) -> Bool {
  let work = unsafe Unmanaged.passRetained(Work(body))
  var thread = pthread_t()
  // SAFETY: the thread takes over the reference; if there is none, we take it back.
  let status = unsafe pthread_create(&thread, nil, { unsafe runWork($0) }, work.toOpaque())
  guard status == 0 else {
    unsafe work.release()
    return false
  }
  pthread_detach(thread)
  return true
}

private func runWork(_ work: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  if let work = unsafe work {
    unsafe Unmanaged<Work>.fromOpaque(work).takeRetainedValue().body()
  }
  return nil
}
