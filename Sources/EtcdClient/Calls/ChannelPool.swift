import Synchronization

/// Connections that no call uses at the moment, of each server.
final class ChannelPool: Sendable {
  /// So many are kept of each server: more are needed only while as many calls run.
  private static let most = 4

  private let idle: Mutex<[[Channel]]>

  init(servers: Int) {
    idle = Mutex(Array(repeating: [], count: servers))
  }

  /// The one that was used last; nil: there is none.
  func take(_ server: Int) -> Channel? {
    idle.withLock { $0[server].popLast() }
  }

  /// Keeps a connection whose stream has ended regularly.
  func put(_ channel: Channel, _ server: Int) {
    channel.end()
    guard channel.wasUsed else { return }
    // A connection too many is closed without the lock.
    _ = idle.withLock { idle -> Channel? in
      idle[server].append(channel)
      return idle[server].count > Self.most ? idle[server].remove(at: 0) : nil
    }
  }

  /// Closes all of a server that does not answer.
  func drop(_ server: Int) {
    _ = idle.withLock { idle in
      let dropped = idle[server]
      idle[server] = []
      return dropped
    }
  }
}
