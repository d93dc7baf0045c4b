// In place of the standard library's: ThreadSanitizer knows what pthread does.
import Glibc

@safe struct Mutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
  private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let value = UnsafeMutablePointer<Value>.allocate(capacity: 1)
  init(_ value: consuming sending Value) {
    unsafe pthread_mutex_init(lock, nil)
    unsafe self.value.initialize(to: value)
  }
  deinit {
    unsafe pthread_mutex_destroy(lock)
    unsafe lock.deallocate()
    unsafe value.deinitialize(count: 1)
    unsafe value.deallocate()
  }
  borrowing func withLock<R: ~Copyable, E: Error>(_ body: (inout sending Value) throws(E) -> sending R)
    throws(E) -> sending R
  {
    unsafe pthread_mutex_lock(lock)
    defer { unsafe pthread_mutex_unlock(lock) }
    return try unsafe body(&value.pointee)
  }
  borrowing func withLockIfAvailable<R: ~Copyable, E: Error>(
    _ body: (inout sending Value) throws(E) -> sending R
  ) throws(E) -> sending R? {
    guard unsafe pthread_mutex_trylock(lock) == 0 else { return nil }
    defer { unsafe pthread_mutex_unlock(lock) }
    return try unsafe body(&value.pointee)
  }
  borrowing func _unsafeLock() { unsafe pthread_mutex_lock(lock) }
  borrowing func _unsafeUnlock() { unsafe pthread_mutex_unlock(lock) }
}
