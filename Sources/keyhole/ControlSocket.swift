import CLinux
import Control
import Dispatch
import Glibc
import Home
import Keychains
import Model
import Mount
import SecretMemory
import Store
import Synchronization
import Tree

/// The socket by which commands tell the process of a mount what to do: `PID.control` in the runtime folder.
///
/// A request is a line: `lock`, `unlock` and after it the passphrase up to the end, `permit` and an item's id, or
/// `choose`, an item's id or `-`, and its path, or `rules` and a folder's path (see `PermitConnection`), `keychain` (see `KeychainServer`), or `path`
/// and an id, which is answered with its path. The answer is `ok`, or what went wrong. Only the user's own processes are heard.
struct ControlSocket {
  /// In seconds; a slow answer to a wrong passphrase included.
  static let patience: Int32 = 60

  static let ending = MountRecord.socketEnding

  private let path: String
  private let source: any DispatchSourceRead

  /// - Throws: `Failure`.
  init(_ places: Places, _ tree: Tree, _ mount: KernelTree, isReadOnly: Bool) throws {
    UserFolders.make(places.runtime)
    path = Self.path(of: getpid(), places)
    let listener = unsafe linux_listen(path)
    guard listener >= 0 else { throw Failure(path, "the socket can't be made: \(systemMessage(errno))") }
    let control = ControlRequests(tree, mount, isReadOnly)
    source = DispatchSource.makeReadSource(fileDescriptor: listener, queue: Background.queue)
    source.setEventHandler { Self.accept(listener, control) }
    source.setCancelHandler { close(listener) }
    source.activate()
  }

  /// Nobody is heard any more.
  func end() {
    unsafe unlink(path)
    source.cancel()
  }

  static func path(of process: Int32, _ places: Places) -> String {
    "\(places.runtime)/\(process)\(ending)"
  }

  private static func accept(_ listener: Int32, _ control: ControlRequests) {
    let connection = linux_accept(listener, patience)
    guard connection >= 0 else { return }
    Background.run {
      guard linux_peer(connection) == getuid(), let line = requestLine(connection) else {
        close(connection)
        return
      }
      let words = line.split(separator: " ", maxSplits: 1)
      if words.count == 2, words[0] == PermitReply.word {
        return control.decide(PermitConnection(connection, control.tree), String(words[1]))
      }
      if words.count == 2, words[0] == PermitReply.wordForNew {
        return control.letChoose(PermitConnection(connection, control.tree), words[1])
      }
      if words.count == 2, words[0] == PermitReply.wordForRules {
        return control.letChangeRules(PermitConnection(connection, control.tree), String(words[1]))
      }
      if line == KeychainServer.word { return control.serveKeychain(connection) }
      if line == MountRest.word { return control.rest(connection) }
      defer { close(connection) }
      let isName = words.count == 2 && words[0] == MountNames.word
      let answer = isName ? control.path(of: words[1]) : answer(to: line, connection, control)
      // SAFETY: the buffer says how long it is. MSG_NOSIGNAL: who asked may be gone.
      _ = unsafe Array(answer.utf8).withUnsafeBytes {
        unsafe send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
    }
  }

  private static func requestLine(_ connection: Int32) -> String? {
    guard let line = try? SecretInput.readLine(descriptor: connection) else { return nil }
    return unsafe line.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
  }

  private static func answer(to line: String, _ connection: Int32, _ control: ControlRequests) -> String {
    do {
      switch line {
      case "lock": try control.lock()
      case "unlock":
        try control.unlock(SecretInput.read(descriptor: connection, limit: SecretInput.lineLimit))
      default: throw Failure(nil, "unknown request")
      }
      return "ok"
    } catch let error as StoreError {
      return error == .rejected ? "rejected" : error.message
    } catch let failure as Failure {
      return failure.reason
    } catch {
      return "there is not enough memory"
    }
  }
}

/// Locks and unlocks the keychain of the mount; wrong passphrases are slowed down.
private final class ControlRequests: Sendable {
  let tree: Tree
  /// One at a time: a passphrase takes much memory, and guessing shall not get faster by asking twice.
  private let turns = DispatchQueue(label: "keyhole.unlocking")
  private let failures = Atomic<Int>(0)
  private let deciding = WaitingThreads()

  /// Each program that uses the keychain by way of the mount has one of them.
  private let serving = WaitingThreads()

  private let mount: KernelTree
  private let isReadOnly: Bool

  init(_ tree: Tree, _ mount: KernelTree, _ isReadOnly: Bool) {
    self.tree = tree
    self.mount = mount
    self.isReadOnly = isReadOnly
  }

  /// On a thread of its own: a person may be asked, or the program stay for long.
  func serveKeychain(_ connection: Int32) {
    guard let keychain = tree.keychain else {
      close(connection)
      return
    }
    let names = KeychainServer.Names(item: { Tree.path(of: $0) }, folder: { Tree.path(of: $0) })
    let desk = KeychainServer(connection, keychain, isReadOnly: isReadOnly, names)
    _ = serving.run { desk.serve() }
  }

  /// Tells who asked when nothing of ours uses the mount, and waits until they are done.
  func rest(_ connection: Int32) {
    _ = deciding.run { [mount] in
      let isResting = DispatchSemaphore(value: 0)
      mount.restEchoes { isResting.signal() }
      isResting.wait()
      var byte = UInt8(ascii: "\n")
      if unsafe send(connection, &byte, 1, Int32(MSG_NOSIGNAL)) == 1 { _ = unsafe read(connection, &byte, 1) }
      mount.resumeEchoes()
      close(connection)
    }
  }

  /// On a thread of its own, because a person may be asked.
  func decide(_ permit: PermitConnection, _ item: String) {
    _ = deciding.run { permit.answer(for: ItemID(rawValue: item)) }
  }

  func letChangeRules(_ permit: PermitConnection, _ path: String) {
    _ = deciding.run { permit.answer(forRulesAt: path) }
  }

  /// `item`: its id or `-`, and its path.
  func letChoose(_ permit: PermitConnection, _ item: Substring) {
    let words = item.split(separator: " ", maxSplits: 1)
    guard words.count == 2 else { return }
    let (id, path) = (ItemID(rawValue: String(words[0])), String(words[1]))
    _ = deciding.run { permit.answer(forNewPasswordOf: id, at: path) }
  }

  /// Empty: there is no such item, or the keychain was never unlocked.
  func path(of item: Substring) -> String {
    let path = try? tree.path(of: ItemID(rawValue: String(item)))
    return (path ?? nil) ?? ""
  }

  func lock() throws {
    try tree.lock()
  }

  func unlock(_ passphrase: consuming SecretBytes) throws {
    guard let keychain = tree.keychain else { throw StoreError.notFound }
    let passphrase = passphrase
    let result: Result<Void, StoreError> = turns.sync {
      let result = Result { () throws(StoreError) in try keychain.unlock(passphrase) }
      slowDown(after: result)
      return result
    }
    try result.get()
  }

  /// After the third wrong passphrase each costs a second more, up to ten.
  private func slowDown(after result: Result<Void, StoreError>) {
    guard case .failure(.rejected) = result else { return failures.store(0, ordering: .relaxed) }
    let count = failures.add(1, ordering: .relaxed).newValue
    if count >= 3 { sleep(UInt32(min(count - 2, 10))) }
  }
}

/// A command's way to the process of a mount.
enum ControlClient {
  enum Answer: Equatable {
    case done
    case rejected
    case failed(String)
  }

  /// - Throws: `Failure` where the mount can't be asked.
  static func ask(
    _ mount: MountRecord, _ places: Places, _ word: String, _ secret: borrowing SecretBytes
  ) throws -> Answer {
    let connection = unsafe linux_connect(
      ControlSocket.path(of: mount.process, places), ControlSocket.patience)
    guard connection >= 0 else { throw Failure(mount.path, "it can't be asked: \(systemMessage(errno))") }
    defer { close(connection) }
    try unsafe Array((word + "\n").utf8).withUnsafeBytes { try unsafe write($0, to: connection) }
    try unsafe secret.withUnsafeBytes { try unsafe write($0, to: connection) }
    shutdown(connection, Int32(SHUT_WR))
    let answer = try SecretInput.read(descriptor: connection, limit: 4096)
    switch unsafe answer.withUnsafeBytes({ unsafe String(decoding: $0, as: UTF8.self) }) {
    case "ok": return .done
    case "rejected": return .rejected
    case "": throw Failure(mount.path, "it did not answer")
    case let reason: return .failed(reason)
    }
  }

  private static func write(_ bytes: UnsafeRawBufferPointer, to connection: Int32) throws {
    var rest = unsafe bytes[...]
    while unsafe !rest.isEmpty {
      let piece = unsafe UnsafeRawBufferPointer(rebasing: rest)
      // SAFETY: the slice says how long it is.
      let count = unsafe send(connection, piece.baseAddress, piece.count, Int32(MSG_NOSIGNAL))
      guard count > 0 else { throw Failure(nil, "the mount can't be asked: \(systemMessage(errno))") }
      unsafe rest = unsafe rest.dropFirst(count)
    }
  }
}
