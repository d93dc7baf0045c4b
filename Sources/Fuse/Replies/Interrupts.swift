import Synchronization

/// The handlers of interrupted requests.
///
/// libfuse reads the callback and its data first and calls later, when another thread may already have answered; so the
/// data it keeps is a number, and the handler stays here. Taking it out is the claim: it is called once or never. And
/// libfuse calls from inside `fuse_req_interrupt_func`, with the request's lock held, when the interrupt came first: an
/// answer at that moment would free the lock that it is about to release. So until registration is over an interrupt
/// is only noted.
enum Interrupts {
  private enum Watch {
    case registering(@Sendable () -> Void)
    case noted(@Sendable () -> Void)
    case started(@Sendable () -> Void)
  }

  private struct Table {
    var lastTicket: UInt = 0
    var watches: [UInt: Watch] = [:]
  }

  private static let table = Mutex(Table())

  /// Registers a handler and returns its number, which is never 0 and never used again.
  static func add(_ handler: @escaping @Sendable () -> Void) -> UInt {
    table.withLock { table in
      table.lastTicket += 1
      table.watches[table.lastTicket] = .registering(handler)
      return table.lastTicket
    }
  }

  /// Ends the registration; calls the handler if the interrupt has been noted since.
  static func start(_ ticket: UInt) {
    let due = table.withLock { table -> (@Sendable () -> Void)? in
      switch table.watches.removeValue(forKey: ticket) {
      case .noted(let handler): return handler
      case .registering(let handler), .started(let handler): table.watches[ticket] = .started(handler)
      case nil: break
      }
      return nil
    }
    due?()
  }

  /// The interrupt has come: libfuse's callback.
  static func fire(_ ticket: UInt) {
    let due = table.withLock { table -> (@Sendable () -> Void)? in
      switch table.watches.removeValue(forKey: ticket) {
      case .started(let handler): return handler
      case .registering(let handler), .noted(let handler): table.watches[ticket] = .noted(handler)
      case nil: break
      }
      return nil
    }
    due?()
  }

  /// Forgets a handler: its request is about to be answered.
  static func withdraw(_ ticket: UInt) {
    // Returned out of the lock, so that what the closure holds is released outside it.
    _ = table.withLock { $0.watches.removeValue(forKey: ticket) }
  }

  /// How many requests are watched: none may be left over.
  static var count: Int { table.withLock { $0.watches.count } }
}
