package import Model
import Platform
package import SecretMemory
package import Store

/// The way of a program to the process of a mount.
package enum ControlClient {
  /// How the names of the sockets end; the process's number stands before it.
  package static let socketEnding = ".control"
  /// How long a mount's process may take to say anything, in seconds.
  package static let patience = 10

  package static func path(of process: Int32, in folder: String) -> String {
    "\(folder)/\(process)\(socketEnding)"
  }

  /// A connection to the process of a mount, after both sides have said `hello`.
  ///
  /// Before anything is sent, the folder has to be the user's own and private, and the process at the other end the
  /// mount's, of the same user.
  ///
  /// `patience` is how long each message may take, in seconds.
  /// - Throws: `unreachable`, `accessDenied` for a folder or a process that is not the user's, `unsupported` for a mount
  ///   of another version.
  package static func connect(
    to process: Int32, in folder: String, identified: Bool, patience: Int = patience
  ) throws(StoreError) -> MessageChannel {
    if let problem = RuntimeFolder.problem(folder) {
      throw .accessDenied(reason: "\(folder) is not used: \(problem)")
    }
    let socket: StreamSocket
    do throws(Errno) {
      socket = try StreamSocket(connectingTo: path(of: process, in: folder), within: patience)
    } catch {
      throw failure(error)
    }
    try checkPeer(socket, process)
    let challenge = try greet(socket, identified, patience)
    return .client(socket, challenge, patience: patience)
  }

  static let gone = StoreError.unreachable(
    reason: "the mount's process can't be asked; `keyhole status` says more")

  /// Whether an error says that the process of the mount gave no answer; else the error is its answer.
  package static func isSilence(_ error: StoreError) -> Bool {
    error == gone || error == MessageChannel.noAnswer || error == MessageChannel.ended
  }

  private static func failure(_ error: Errno) -> StoreError {
    switch error {
    case .EAGAIN: MessageChannel.noAnswer
    case .ENOENT, .ECONNREFUSED: gone
    default: .system(error, operation: "connect")
    }
  }

  private static func checkPeer(_ socket: StreamSocket, _ process: Int32) throws(StoreError) {
    let peer = socket.peer
    guard peer.user == User.real, peer.process == process else {
      let user = peer.user.map { "user \($0)" } ?? "an unknown user"
      throw .accessDenied(
        reason: "process \(peer.process) of \(user) listens in place of the mount's process \(process)")
    }
  }

  /// Returns the number that the server gives to this connection.
  private static func greet(
    _ socket: StreamSocket, _ identified: Bool, _ patience: Int
  ) throws(StoreError) -> UInt64 {
    let version = ControlMessage.version
    let hello: ControlMessage =
      identified ? .hello(version: version, challenge: 0) : .helloUnidentified(version: version)
    guard MessageChannel.send(hello, 0, to: socket, patience) else { throw gone }
    let deadline = ContinuousClock.now + .seconds(patience)
    var reader = MessageReader(.hello)
    while true {
      let progress = try reader.read(from: socket)
      if let first = reader.head.first, LineProtocol.isBeginning(first) { throw otherVersion(1) }
      switch progress {
      case .complete: return try challenge(of: reader.take())
      case .ended: throw MessageChannel.ended
      case .waiting:
        guard (try? socket.wait(until: deadline)) == true else { throw MessageChannel.noAnswer }
      }
    }
  }

  private static func challenge(of greeting: Message) throws(StoreError) -> UInt64 {
    switch greeting.content {
    case .hello(ControlMessage.version, let challenge): return challenge
    case .hello(let other, _): throw otherVersion(other)
    case .failed(let error): throw error
    default: throw WireReader.unreadable
    }
  }

  static func otherVersion(_ version: UInt32) -> StoreError {
    .unsupported(
      reason: "the mount is served by another version of Keyhole (control protocol \(version), here "
        + "\(ControlMessage.version)); unmount it and mount it again")
  }

  /// The processes that have a socket in a folder, the newest first.
  static func processes(in folder: String) -> [Int32] {
    names(in: folder).compactMap { name in
      name.hasSuffix(socketEnding) ? Int32(name.dropLast(socketEnding.count)) : nil
    }.sorted(by: >)
  }
}

extension ControlClient {
  /// Sends a request without identification and waits for its reply.
  ///
  /// - Throws: what `connect` throws; the mount's own error.
  package static func ask(
    _ process: Int32, in folder: String, _ request: ControlMessage, patience: Int = patience
  ) throws(StoreError) -> ControlMessage {
    let channel = try connect(to: process, in: folder, identified: false, patience: patience)
    guard channel.send(request) else { throw MessageChannel.ended }
    return try channel.reply().content
  }

  /// Sends a request of an identified process, which has no reply but `done`, and waits for that: a person may be asked.
  ///
  /// - Throws: what `connect` throws; the mount's own error.
  package static func askIdentified(
    _ process: Int32, in folder: String, _ request: ControlMessage
  ) throws(StoreError) {
    let channel = try connect(to: process, in: folder, identified: true)
    guard channel.send(request) else { throw MessageChannel.ended }
    _ = try channel.reply()
  }

  /// The same with a secret.
  package static func ask(
    _ process: Int32, in folder: String, _ request: ControlMessage, secret: borrowing SecretBytes
  ) throws(StoreError) -> ControlMessage {
    let channel = try connect(to: process, in: folder, identified: false)
    guard channel.send(request, secret: secret) else { throw MessageChannel.ended }
    return try channel.reply().content
  }
}

extension MessageChannel {
  /// The reply to a request, also while the other side works on it or asks a person.
  ///
  /// - Throws: what `receive` throws; the mount's own error.
  package func reply() throws(StoreError) -> Message {
    while true {
      let message = try receive()
      switch message.content {
      case .pending: continue
      case .failed(let error): throw error
      default: return message
      }
    }
  }
}

extension ControlClient {
  /// Has every mount of a runtime folder know the executable of this process, which it can't read any more once this
  /// process is not dumpable (prctl(2)), and the program that `keyhole run` starts. A mount that does not answer within two
  /// seconds is left out.
  package static func identify(in folder: String, starting program: Caller.Identity.Executable? = nil) {
    for process in processes(in: folder) {
      guard let channel = try? connect(to: process, in: folder, identified: true, patience: 2) else {
        continue
      }
      if channel.send(.identify(starting: program)) { _ = try? channel.reply() }
    }
  }
}
