public import Fuse
import Glibc
import Notifier
import Platform
import Tree

// `.keyhole/events`: reads wait for the next line, and poll(2) tells when it is there.
extension TreeFileSystem {
  func readEvents(_ reader: EventReader, at offset: Int, size: Int, reply: consuming DataReply) {
    let bytes = reader.read(at: offset, count: size)
    guard bytes.isEmpty, size > 0 else {
      // SAFETY: bytes are bytes; the array outlives the call.
      return _ = reply.succeed(bytes.span)
    }
    guard !reply.isNonBlocking else { return _ = reply.fail(.EAGAIN) }
    let ticket = reader.log.ticket()
    let parked = reply.park { parked in
      reader.log.withdraw(ticket)
      _ = parked.claim()?.fail(.EINTR)
    }
    reader.wait(ticket) { [self] in
      guard let reply = parked.claim() else { return }
      readEvents(reader, at: offset, size: size, reply: reply)
    }
  }

  /// Reads a page for a mapping (MAP_PRIVATE; the kernel refuses MAP_SHARED) or for read-ahead: what is kept so far, at
  /// once. Processes that need the page wait for its lock, which no signal ends.
  func readPage(of log: EventLog, at offset: Int, size: Int, reply: consuming DataReply) {
    guard let page = log.page(at: offset, count: size) else { return _ = reply.fail(.EIO) }
    // SAFETY: bytes are bytes; the array outlives the call.
    _ = reply.succeed(page.span)
  }

  /// POLL: for `.keyhole/events` readable when there are lines that the handle has not read; other files always are.
  public func poll(
    _ node: NodeID, handle: FileHandle, events: UInt32, wakeup: PollWakeup?, request: Request,
    reply: consuming PollReply
  ) {
    // The kernel asks for every file once one was answered; all others are always ready.
    guard handle != .replay, let reader = OpenFiles.file(handle).handle.events else {
      return _ = reply.succeed(events: events & UInt32(POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM))
    }
    let isReady = reader.hasMore
    reply.succeed(events: isReady ? events & UInt32(POLLIN | POLLRDNORM) : 0)
    guard !isReady, let wakeup else { return }
    reader.wait(reader.ticket) { wakeup.wake() }
  }
}
