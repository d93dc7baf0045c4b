import ArgumentParser
import Glibc
import Model
import SecretMemory
import Tree

struct EditCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "edit", abstract: "Edit a setting or a secret, and leave nothing of it on the disk.",
    discussion: """
      Starts $VISUAL, else $EDITOR, else vi on a copy in locked memory, and stores it when the editor has \
      ended well; a key or an item that is not there is made. vim, nvim, nano, emacs, joe and micro get the \
      options that keep swap, undo, backups and history from the disk; for other editors TMPDIR is a folder in \
      that memory. One that returns at once has to be told to wait, as in EDITOR='code --wait'.

      Where the editor fails or changes nothing, the value stays as it is.
      """)

  @Argument(help: "A key or a value, such as keychain/generic/my.service/peter/value.")
  var path: String

  func run() throws {
    EndSignals.hold()
    let path = TreePath(path)
    let edit = try Edit(path, TreeSession(for: path), EditorProgram.chosen())
    try edit.run()
  }
}

/// One edit, from the value as it is to the value as it is to be.
private final class Edit {
  private let path: TreePath
  private let session: TreeSession
  private let editor: EditorProgram
  /// What is stored, as far as is known; nil: nothing.
  private var stored: SecretBytes?

  init(_ path: TreePath, _ session: TreeSession, _ editor: EditorProgram) throws {
    self.path = path
    self.session = session
    self.editor = editor
    stored = try Self.fetch(path, session)
  }

  func run() throws {
    let folder = try PrivateFolder(Places.current(), session.tree.settings)
    defer { folder.remove() }
    let file = try folder.file(named: path.name == "value" ? "secret" : path.name)
    if let stored = stored.take() {
      try unsafe stored.withUnsafeBytes { try unsafe file.write($0) }
      self.stored = consume stored
    }
    repeat {
      let status = try editor.run(on: file.path, temporaries: folder.path)
      guard status == 0 else {
        throw Failure(path.string, "the editor ended with exit code \(status); nothing was changed")
      }
    } while try !store(file.read())
  }

  /// Returns whether the edit is over: stored, or given up by whoever was asked.
  private func store(_ edited: borrowing SecretBytes) throws -> Bool {
    do {
      if try isUnchanged(edited) { return true }
      try checkStored()
      try unsafe edited.withUnsafeBytes { try unsafe session.write($0, to: path) }
      return true
    } catch let failure as Failure {
      guard isatty(STDIN_FILENO) == 1 else { throw failure }
      failure.report()
      StandardError.write("Edit again? (y/n) ")
      guard readLine()?.hasPrefix("y") == true else { throw Failure(path.string, "nothing was changed") }
      return false
    }
  }

  /// Editors end the last line; a secret of one line has no such end.
  private func isUnchanged(_ edited: borrowing SecretBytes) throws -> Bool {
    guard let before = stored.take() else { return edited.isEmpty }
    let isSame = edited == before
    let isEnded = try path.isSecret && edited == before.endingLine()
    stored = consume before
    return isSame || isEnded
  }

  /// What somebody else has stored since is not written over before this is known.
  private func checkStored() throws {
    let now = try Self.fetch(path, session)
    let isSame = SecretBytes.areEqual(now, stored)
    stored = consume now
    guard isSame else {
      throw Failure(path.string, "somebody else has changed it meanwhile; nothing was written")
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
    try unsafe session.read(path) { bytes in
      do throws(SecretMemoryError) { try unsafe copy.append(bytes) } catch { failure = error }
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
    case "keychain": components.count == 5 && name == "value"
    default: false
    }
  }
}

extension SecretBytes {
  fileprivate borrowing func endingLine() throws -> SecretBytes {
    var copy = try SecretBytes(copying: self)
    try unsafe [UInt8(ascii: "\n")].withUnsafeBytes { try unsafe copy.append($0) }
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
