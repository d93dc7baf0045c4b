import Dispatch
package import Model
import Platform
import SecretMemory
import Synchronization

/// The person at the terminal of an edit.
package protocol EditDialog: Sendable {
  /// Prints something that the person has to know.
  func report(_ failure: Failure)

  /// Whether the value can be edited again after a failure, which the person is asked; nil: there is no person.
  func editsAgain(after failure: Failure) -> Bool?
}

/// One edit, from the value as it is to the value as it is to be.
package final class Edit: Sendable {
  private let path: TreePath
  private let session: TreeSession
  private let editor: EditorProgram
  private let dialog: any EditDialog
  private let value: EditedValue
  /// The process of the editor; 0: none runs.
  private let editing = Atomic<Int32>(0)
  private let isEnding = Atomic(false)

  /// After `EndSignals.hold`. - Throws: `Failure` where no value can stand at the path.
  package init(
    _ path: TreePath, _ session: TreeSession, _ editor: EditorProgram, _ dialog: any EditDialog
  ) throws {
    self.path = path
    self.session = session
    self.editor = editor
    self.dialog = dialog
    value = try EditedValue(path, session)
  }

  /// Returns when the value is stored, or nothing was to be changed.
  ///
  /// - Throws: `Failure`; the value is as it was then.
  package func run() throws {
    let places = try StoragePaths.current()
    let folder = try PrivateFolder(places)
    defer { folder.remove() }
    let signals = endOnSignals(folder)
    defer { signals?.cancel() }
    let locks = path.isSecret ? KeychainLocks(session.stores, places) { [self] in wipe(folder) } : nil
    let file = folder.file(named: path.isSecret ? "secret" : path.name)
    try value.read { try file.write($0) }
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
    guard file.isThere || !value.isStored else {
      throw Failure(path.string, "the editor has removed the file; nothing was changed")
    }
    return try store(edited, from: folder)
  }

  private static let lockedMeanwhile = """
    the keychain or the session was locked while the editor ran, or the machine slept. What the editor had saved was wiped with it, and nothing was \
    stored; edit it again, after `keyhole unlock` where a mount is locked
    """

  private func store(_ edited: borrowing SecretBytes, from folder: PrivateFolder) throws -> Bool {
    do {
      if try value.equals(edited) {
        reportRefusedPrograms(folder)
      } else {
        try value.replace(with: edited)
      }
      return true
    } catch let failure as Failure {
      guard !folder.isSealed, let editsAgain = dialog.editsAgain(after: failure) else { throw failure }
      guard editsAgain else { throw Failure(path.string, "nothing was changed") }
      return false
    }
  }

  /// An editor that hands its file to a process that runs already has seen nothing of it.
  private func reportRefusedPrograms(_ folder: PrivateFolder) {
    guard let programs = folder.refusedPrograms else { return }
    let text = """
      nothing was changed. Only the editor that this command starts can open the file, and what that editor starts; \
      these were refused it: \(programs)
      """
    dialog.report(Failure(path.string, text))
  }
}

// MARK: - Ends from outside

extension Edit {
  /// SIGTERM and SIGHUP end the editor and this command, and nothing is stored. SIGINT and SIGQUIT, which the terminal
  /// sends to both, are the editor's.
  private func endOnSignals(_ folder: PrivateFolder) -> (any DispatchSourceRead)? {
    EndSignals.watch(for: [.terminate, .hangUp]) { [self] signal in end(by: signal, folder) }
  }

  private func end(by signal: Signals.Signal, _ folder: PrivateFolder) -> Never {
    isEnding.store(true, ordering: .releasing)
    folder.remove()
    ProcessNumber.send(signal, to: editing.load(ordering: .relaxed))
    Signals.end(by: signal)
  }

  private func wipe(_ folder: PrivateFolder) {
    folder.seal()
    value.wipe()
  }
}
