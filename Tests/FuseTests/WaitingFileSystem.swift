import Platform
import Synchronization

@testable import Fuse

/// A file system whose opens of names that begin with `wait` park until the test lets them go.
final class WaitingFileSystem: MemoryFileSystem, @unchecked Sendable {
  let parked = Mutex<[Parked<OpenAnswer>]>([])
  let arrived = Event()
  let interrupted = Event()
  let interrupts = Atomic<Int>(0)

  override func open(_ node: NodeID, flags: Int32, request: Request, reply: consuming OpenReply) {
    guard isWaiting(node) else {
      super.open(node, flags: flags, request: request, reply: reply)
      return
    }
    let waiting = reply.park { [self] parked in
      guard let reply = parked.claim() else { return }
      reply.fail(.EINTR)
      interrupts.add(1, ordering: .relaxed)
      interrupted.happen()
    }
    parked.withLock { $0.append(waiting) }
    arrived.happen()
  }

  /// Takes what is parked, to be answered or dropped.
  func takeParked() -> [Parked<OpenAnswer>] {
    parked.withLock { parked in
      defer { parked = [] }
      return parked
    }
  }

  private func isWaiting(_ node: NodeID) -> Bool {
    state.withLock { state in
      state.names.contains { $0.value == node.rawValue && $0.key.starts(with: Array("wait".utf8)) }
    }
  }
}
