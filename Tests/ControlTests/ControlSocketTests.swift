import Glibc
import Model
import Platform
import SecretMemory
import Store
import StoreConformance
import Synchronization
import Testing

@testable import Control

/// Connections to the control socket, complete and incomplete.
@Suite(.serialized, .timeLimit(.minutes(1))) struct ControlSocketTests {
  /// A connection as any program can make it.
  private static func connect(_ mount: Mount) throws -> StreamSocket {
    try StreamSocket(connectingTo: "\(mount.folder)/\(getpid()).control", within: 10)
  }

  private static func send(_ text: String, _ connection: StreamSocket) {
    _ = MessageChannel.send(Array(text.utf8).span, to: connection, 5)
  }

  /// Everything up to the end of the connection.
  private static func readAll(_ connection: StreamSocket) throws -> [UInt8] {
    var all: [UInt8] = []
    while case let bytes = try receive(connection), !bytes.isEmpty { all += bytes }
    return all
  }

  /// The next bytes; empty: the other side has closed the connection.
  private static func receive(_ connection: StreamSocket) throws -> [UInt8] {
    var chunk = [UInt8](repeating: 0, count: 4096)
    try #require(try connection.wait(until: .now + .seconds(10)))
    var span = chunk.mutableSpan
    let count = (try? connection.receive(into: &span)?.count) ?? 0
    return Array(chunk[..<count])
  }

  // MARK: Versions

  @Test(arguments: [
    "lock\n", "unlock\nhorse", "permit 0123-4567\n", "choose - keychain/a b\n", "rules keychain\n",
  ])
  func clientOfTheFirstVersionGetsAnAnswerItCanShow(_ line: String) throws {
    let mount = try Mount()
    defer { mount.stop() }
    let connection = try Self.connect(mount)
    Self.send(line, connection)
    connection.endSending()
    #expect(String(decoding: try Self.readAll(connection), as: UTF8.self) == LineProtocol.refusal)
    #expect(mount.service.locks.load(ordering: .relaxed) == 0)
  }

  /// Its keychain expects a frame: the kind, the length of the secret, and the body behind its length.
  @Test func wrapperOfTheFirstVersionGetsAFailure() throws {
    let mount = try Mount()
    defer { mount.stop() }
    let connection = try Self.connect(mount)
    Self.send("keychain\n", connection)
    let frame = try Self.readAll(connection)
    #expect(Array(frame.prefix(5)) == [101, 255, 255, 255, 255])
    var reader = WireReader(Array(frame.dropFirst(5)))
    var error = WireReader(try reader.content())
    #expect(try error.error() == .unreachable(reason: LineProtocol.refusal))
  }

  @Test(arguments: ["path 0123-4567\n", "rest\n", "something that nobody ever said\n"])
  func whatWouldBeMisunderstoodIsNotAnswered(_ line: String) throws {
    let mount = try Mount()
    defer { mount.stop() }
    let connection = try Self.connect(mount)
    Self.send(line, connection)
    #expect(try Self.readAll(connection).isEmpty)
  }

  /// A mount of Keyhole 0.1 reads a line, and answers a text.
  @Test func mountOfTheFirstVersionIsNamedAsSuch() throws {
    let folder = try Mount.makeFolder()
    let path = "\(folder)/\(getpid()).control"
    let listener = Listener(try StreamListener(at: path))
    defer {
      unsafe unlink(path)
      unsafe rmdir(folder)
    }
    let threads = WaitingThreads()
    let received = Mutex<[UInt8]>([])
    let isTaken = threads.run {
      guard let connection = try? listener.accept() else { return }
      while let bytes = try? Self.receive(connection), !bytes.isEmpty {
        received.withLock { $0 += bytes }
        if bytes.last == 0x0A { break }
      }
      Self.send("unknown request", connection)
    }
    #expect(isTaken)
    #expect(throws: ControlClient.otherVersion(1)) {
      _ = try ControlClient.ask(getpid(), in: folder, .unlock, secret: KeychainSamples.secret("horse"))
    }
    threads.finish()
    #expect(!received.withLock { $0 }.isEmpty)
  }

  @Test func laterVersionIsAnsweredWithOurs() throws {
    let mount = try Mount()
    defer { mount.stop() }
    let connection = try Self.connect(mount)
    _ = MessageChannel.send(.hello(version: 9, challenge: 0), 0, to: connection, 5)
    let reply = try MessageChannel.receive(from: connection, .hello, nil, nil, within: 10)
    #expect(reply.content == .hello(version: ControlMessage.version, challenge: 0))
    #expect(try Self.readAll(connection).isEmpty)
  }

  // MARK: Idle and slow connections

  /// Bytes that keep a connection busy without a request.
  enum Idler: CaseIterable {
    case silent, half, greeted, halfRequest

    func begin(_ connection: StreamSocket) {
      let hello = ControlMessage.hello(version: ControlMessage.version, challenge: 0)
      switch self {
      case .silent: break
      case .half: _ = MessageChannel.send(([1, 0, 0] as [UInt8]).span, to: connection, 5)
      case .greeted: _ = MessageChannel.send(hello, 0, to: connection, 5)
      case .halfRequest:
        let unidentified = ControlMessage.helloUnidentified(version: ControlMessage.version)
        _ = MessageChannel.send(unidentified, 0, to: connection, 5)
        let request = MessageHeader(.unlock, bodyLength: 0, secretLength: 1 << 20, challenge: 1)
        _ = MessageChannel.send((request.bytes + [0]).span, to: connection, 5)
      }
    }
  }

  @Test(arguments: Idler.allCases) func sevenHundredIdleConnectionsDelayNothing(_ idler: Idler) throws {
    let mount = try Mount()
    defer { mount.stop() }
    let id = try mount.engine.add(KeychainSamples.generic("a"), "one").id
    var limit = rlimit()
    unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = min(limit.rlim_max, 8192)
    unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    var connections: [StreamSocket] = []
    for _ in 0..<700 {
      let connection = try Self.connect(mount)
      connections.append(connection)
      idler.begin(connection)
    }
    let engine = mount.open()
    #expect(try engine.bytes(of: id) == Array("one".utf8))
    try mount.ask(.lock)
    #expect(mount.store.engine.locking.lockState == .locked)
    // They are closed by themselves.
    #expect(connections.allSatisfy { Self.isClosed($0) })
  }

  private static func isClosed(_ connection: StreamSocket) -> Bool {
    var entry = pollfd(fd: connection.number, events: 0x2000 /* POLLRDHUP */, revents: 0)
    return unsafe poll(&entry, 1, 10_000) == 1
  }

  // MARK: Who sends

  /// A connection that was made by one process and is used by another gets nothing.
  @Test func connectionUsedByAnotherProcessIsRefused() throws {
    let mount = try Mount()
    defer { mount.stop() }
    let connection = try Self.connect(mount)
    // python3 sends the greeting through the connection that it inherits.
    let hello = ControlMessage.helloUnidentified(version: ControlMessage.version)
    let header = MessageHeader(hello, bodyLength: hello.body.count, secretLength: nil, challenge: 0)
    let bytes = (header.bytes + hello.body).map { "\\\($0 / 64)\($0 / 8 % 8)\($0 % 8)" }.joined()
    let status = try Self.run("/usr/bin/printf", ["printf", bytes], output: connection.number)
    try #require(status == 0)
    let reply = try MessageChannel.receive(from: connection, .any, nil, nil, within: 10)
    guard case .failed(.accessDenied) = reply.content else {
      Issue.record("\(reply.content)")
      return
    }
  }

  private static func run(_ program: String, _ words: [String], output: Int32) throws -> Int32 {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    var pointers = unsafe words.map { unsafe strdup($0) } + [nil]
    defer { unsafe pointers.forEach { unsafe free($0) } }
    var (process, status) = (pid_t(), Int32(-1))
    // SAFETY: all strings live until the call returns.
    guard unsafe posix_spawn(&process, program, &actions, nil, &pointers, environ) == 0 else { return -1 }
    while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
    return status
  }

  /// A request that was sent before the greeting was answered does not hold the number, and is none.
  @Test func requestSentAheadIsRefused() throws {
    let mount = try Mount()
    defer { mount.stop() }
    let connection = try Self.connect(mount)
    _ = MessageChannel.send(.helloUnidentified(version: ControlMessage.version), 0, to: connection, 5)
    _ = MessageChannel.send(.lock, 0, to: connection, 5)
    let greeting = try MessageChannel.receive(from: connection, .hello, nil, nil, within: 10)
    guard case .hello = greeting.content else { throw StoreError.damaged(what: "greeting") }
    let reply = try MessageChannel.receive(from: connection, .any, nil, nil, within: 10)
    #expect(reply.content == .failed(WireReader.unreadable))
    #expect(mount.service.locks.load(ordering: .relaxed) == 0)
  }

  @Test func secretNeedsIdentification() throws {
    let mount = try Mount()
    defer { mount.stop() }
    let id = try mount.engine.add(KeychainSamples.generic("a"), "one").id
    for request in [ControlMessage.fetchSecret(id), .permit(id, .read, .value), .fetchItems, .watch] {
      #expect(throws: StoreError.accessDenied(reason: "this request needs an identified process")) {
        try mount.ask(request)
      }
    }
  }

  // MARK: Whom a client trusts

  @Test func folderOthersCanUseIsRefused() throws {
    let mount = try Mount()
    defer { mount.stop() }
    unsafe chmod(mount.folder, 0o755)
    #expect(throws: StoreError.self) { try mount.ask(.lock) }
    #expect(throws: StoreError.self) { _ = try ControlServer(folder: mount.folder, mount.service) }
    unsafe chmod(mount.folder, 0o700)
    try mount.ask(.lock)
  }

  /// The socket has the name of another process.
  @Test func otherProcessThanTheMountsIsToldNothing() throws {
    let mount = try Mount()
    defer { mount.stop() }
    let (own, other) = ("\(mount.folder)/\(getpid()).control", "\(mount.folder)/1.control")
    unsafe link(own, other)
    defer { unsafe unlink(other) }
    #expect(throws: StoreError.self) {
      _ = try ControlClient.ask(1, in: mount.folder, .unlock, secret: KeychainSamples.secret("horse"))
    }
    #expect(mount.store.engine.locking.lockState == .open)
  }

  @Test(.timeLimit(.minutes(1))) func hungMountIsNamedInTime() throws {
    let mount = try Mount(isSilent: true)
    defer { mount.stop() }
    #expect(throws: MessageChannel.noAnswer) {
      _ = try ControlClient.ask(getpid(), in: mount.folder, .lock, patience: 1)
    }
  }

  // MARK: What is demanded

  /// A permit to read an item is none to take its protection away.
  @Test func rewriteThatChangesProtectionIsAQuestionOfItsOwn() throws {
    let mount = try Mount(reuse: 0)
    defer { mount.stop() }
    var item = KeychainSamples.generic("guarded")
    item.access = [.userPresence]
    let id = try mount.engine.add(item, "secret").id
    let engine = mount.open()
    _ = try engine.rewrite(id, readingSecret: true) { item, _ in item.access = [] }
    #expect(mount.person.questions.count == 2)
  }

  /// An item's own password is not handed out, also where it was just typed.
  @Test func permitGivesNoPassword() throws {
    let mount = try Mount(reuse: 0)
    defer { mount.stop() }
    mount.person.say(.approved(ItemPassword(try KeychainSamples.secret("word"))))
    var item = KeychainSamples.generic("sealed")
    item.access = [.applicationPassword]
    let id = try KeychainStore(engine: mount.open()).add(item, secret: KeychainSamples.secret("secret")).id
    let channel = try ControlClient.connect(to: getpid(), in: mount.folder, identified: true)
    channel.send(.permit(id, .read, .value))
    #expect(throws: StoreError.self) { _ = try channel.reply() }
  }

  @Test func wrongPassphraseIsSaidAndTheRightOneOpens() throws {
    let mount = try Mount()
    defer { mount.stop() }
    try mount.ask(.lock)
    #expect(throws: StoreError.rejected) {
      _ = try ControlClient.ask(getpid(), in: mount.folder, .unlock, secret: KeychainSamples.secret("dog"))
    }
    _ = try ControlClient.ask(getpid(), in: mount.folder, .unlock, secret: KeychainSamples.secret("horse"))
    #expect(mount.store.engine.locking.lockState == .open)
  }
}

/// A listening socket for another thread.
private final class Listener: Sendable {
  private let socket: StreamListener

  init(_ socket: consuming StreamListener) {
    self.socket = socket
  }

  /// The next connection, within ten seconds.
  func accept() throws -> StreamSocket {
    _ = try Poll.wait(for: socket.number, until: .now + .seconds(10))
    return try socket.accept()
  }
}
