import ArgumentParser
import Dispatch
import Model
import Platform
import Prompting
import SecretMemory
import Service
import Synchronization
import Tree

struct EditCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "edit", abstract: "Edit a setting or a secret, and leave nothing of it on the disk.",
    discussion: """
      Starts $VISUAL, else $EDITOR, else vi on a copy in locked memory, and stores it when the editor has \
      ended well; a key or an item that is not there is made. vim, nvim, nano, emacs, joe and micro get the \
      options that keep swap, undo, backups and history from the disk; for other editors TMPDIR is a folder in \
      that memory. One that returns at once needs an option to wait, as in EDITOR='code --wait'.

      Only the editor and what it starts can open the copy, not other programs of the user: an editor that hands its \
      file to a process that runs already (emacsclient, or code where a window of it is open) can't be used.

      Where the editor fails or changes nothing, the value stays as it is. When the keychain or the session is \
      locked meanwhile, or the machine goes to sleep, the copy of a secret is wiped: the editor can't save any more, and nothing is stored. So it is when the command gets \
      SIGTERM or SIGHUP.
      """)

  @Argument(help: "A key, a value or an otpauth file, such as keychain/generic/my.service/peter/value.")
  var path: String

  func run() throws {
    EndSignals.hold()
    let path = TreePath(path)
    let session = try TreeSession(for: path)
    if path.isOtpauth { try session.requireStored(path) }
    let edit = try Edit(path, session, EditorProgram.chosen())
    try edit.run()
  }
}

/// One edit, from the value as it is to the value as it is to be.
private final class Edit: Sendable {
  private let path: TreePath
  private let session: TreeSession
  private let editor: EditorProgram
  /// The stored value, as far as it is known; nil: none, or it was wiped by a lock.
  private let stored: Mutex<SecretBytes?>
  /// The process of the editor; 0: none runs.
  private let editing = Atomic<Int32>(0)
  private let isEnding = Atomic(false)

  init(_ path: TreePath, _ session: TreeSession, _ editor: EditorProgram) throws {
    self.path = path
    self.session = session
    self.editor = editor
    stored = Mutex(try Self.fetch(path, session))
  }

  func run() throws {
    let places = try StoragePaths.current()
    let folder = try PrivateFolder(places)
    defer { folder.remove() }
    let signals = endOnSignals(folder)
    defer { signals?.cancel() }
    let locks = path.isSecret ? KeychainLocks(session.stores, places) { [self] in wipe(folder) } : nil
    let file = folder.file(named: path.isSecret ? "secret" : path.name)
    try fill(file)
    try withExtendedLifetime(locks) {
      while try !edit(file, in: folder) {}
    }
  }

  /// Runs the editor once. Returns whether the edit is over: stored, or given up by the person.
  private func edit(_ file: PrivateFile, in folder: PrivateFolder) throws -> Bool {
    let status = try editor.run(on: file.path, temporaries: folder.path) {
      editing.store($0, ordering: .relaxed)
    }
    editing.store(0, ordering: .relaxed)
    // Where a signal ends this command, it does so on another thread.
    while isEnding.load(ordering: .acquiring) { Pause.untilSignal() }
    let edited = try file.read()
    // Asked after the read: what was read before a wipe is whole.
    guard !folder.isSealed else { throw Failure(path.string, Self.lockedMeanwhile) }
    guard status == 0 else {
      throw Failure(path.string, "the editor ended with exit code \(status); nothing was changed")
    }
    guard file.isThere || !isStored else {
      throw Failure(path.string, "the editor has removed the file; nothing was changed")
    }
    return try store(edited, from: folder)
  }

  /// Whether the editor found a file.
  private var isStored: Bool { stored.withLock { $0 != nil } }

  private static let lockedMeanwhile = """
    the keychain or the session was locked while the editor ran, or the machine slept. What the editor had saved was wiped with it, and nothing was \
    stored; edit it again, after `keyhole unlock` where a mount is locked
    """

  private func fill(_ file: PrivateFile) throws {
    try stored.withLock { stored in
      guard let bytes = stored.take() else { return }
      let result = Result { try file.write(bytes.span) }
      stored = consume bytes
      try result.get()
    }
  }

  private func store(_ edited: borrowing SecretBytes, from folder: PrivateFolder) throws -> Bool {
    do {
      if try isUnchanged(edited) {
        sayWhatWasRefused(folder)
        return true
      }
      try checkStored()
      try session.write(edited.span, to: path)
      return true
    } catch let failure as Failure {
      guard SecretInput.isTyped, !folder.isSealed else { throw failure }
      failure.report()
      StandardError.write("Edit again? (y/n) ")
      guard readLine()?.hasPrefix("y") == true else { throw Failure(path.string, "nothing was changed") }
      return false
    }
  }

  /// An editor that hands its file to a process that runs already has seen nothing of it.
  private func sayWhatWasRefused(_ folder: PrivateFolder) {
    guard let programs = folder.refusedPrograms else { return }
    let text = """
      nothing was changed. Only the editor that this command starts can open the file, and what that editor starts; \
      these were refused it: \(programs)
      """
    Failure(path.string, text).report()
  }
}

// MARK: - Ends from outside

extension Edit {
  /// SIGTERM and SIGHUP end the editor and this command, and nothing is stored. SIGINT and SIGQUIT, which the terminal
  /// sends to both, are the editor's.
  private func endOnSignals(_ folder: PrivateFolder) -> (any DispatchSourceRead)? {
    guard let pending = try? SignalDescriptor([.terminate, .hangUp]) else { return nil }
    let source = DispatchSource.makeReadSource(fileDescriptor: pending.number, queue: Background.queue)
    source.setEventHandler { [self] in
      if let signal = pending.next() { end(by: signal, folder) }
    }
    source.setCancelHandler { withExtendedLifetime(pending) {} }
    source.activate()
    return source
  }

  private func end(by signal: Signals.Signal, _ folder: PrivateFolder) -> Never {
    isEnding.store(true, ordering: .releasing)
    folder.remove()
    ProcessNumber.send(signal, to: editing.load(ordering: .relaxed))
    Signals.end(by: signal)
  }

  private func wipe(_ folder: PrivateFolder) {
    folder.seal()
    stored.withLock { $0 = nil }
  }
}

// MARK: - What is stored

extension Edit {
  /// Editors end the last line; a secret of one line has no such end.
  private func isUnchanged(_ edited: borrowing SecretBytes) throws -> Bool {
    try stored.withLock { stored in
      guard let before = stored.take() else { return edited.isEmpty }
      let isSame = edited == before
      let isEnded = try path.isSecret && edited == before.endingLine()
      stored = consume before
      return isSame || isEnded
    }
  }

  /// Another program may have stored a value since: it is not replaced.
  private func checkStored() throws {
    var now = try Self.fetch(path, session)
    let isSame = stored.withLock { stored in
      let isSame = SecretBytes.areEqual(now, stored)
      stored = now.take()
      return isSame
    }
    guard isSame else {
      throw Failure(path.string, "another program has changed it meanwhile; nothing was written")
    }
  }

  private static func fetch(_ path: TreePath, _ session: TreeSession) throws -> SecretBytes? {
    guard let node = try session.existingNode(at: path) else {
      guard path.canHoldAValue else { throw Failure(path.string, StoreError.notFound) }
      return nil
    }
    guard !node.isDirectory else { throw Failure(path.string, StoreError.isDirectory) }
    var copy = try SecretBytes()
    var failure: SecretMemoryError?
    try session.read(path) { bytes in
      do throws(SecretMemoryError) { try copy.append(bytes) } catch { failure = error }
    }
    if let failure { throw failure }
    return copy
  }
}

extension TreePath {
  /// Whether a key or a secret can stand there.
  fileprivate var canHoldAValue: Bool {
    switch components.first {
    case "defaults": components.count == 3
    case "keychain": components.count == 5 && (name == "value" || isOtpauth)
    default: false
    }
  }
}

extension SecretBytes {
  fileprivate borrowing func endingLine() throws -> SecretBytes {
    var copy = try SecretBytes(copying: self)
    try copy.append([UInt8(ascii: "\n")].span)
    return copy
  }

  fileprivate static func areEqual(_ left: borrowing SecretBytes?, _ right: borrowing SecretBytes?) -> Bool {
    switch left {
    case nil:
      switch right {
      case nil: return true
      case _?: return false
      }
    case let left?:
      switch right {
      case nil: return false
      case let right?: return left == right
      }
    }
  }
}
