import Model
import Platform
import SecretMemory
import Store
import Synchronization
import Tree

/// The value that an edit is of, as it was stored when it was read last; wiped by a lock.
final class EditedValue: Sendable {
  let path: TreePath
  private let session: TreeSession
  /// nil: there is none, or it was wiped.
  private let stored: Mutex<SecretBytes?>

  /// - Throws: `Failure` where the path leads to a folder, or where no value can stand.
  init(_ path: TreePath, _ session: TreeSession) throws {
    self.path = path
    self.session = session
    stored = Mutex(try Self.fetch(path, session))
  }

  /// Whether there was a value.
  var isStored: Bool { stored.withLock { $0 != nil } }

  /// Lends the value, if there is one.
  func read(_ body: (Span<UInt8>) throws -> Void) throws {
    try stored.withLock { stored in
      guard let bytes = stored.take() else { return }
      let result = Result { try body(bytes.span) }
      stored = consume bytes
      try result.get()
    }
  }

  /// Whether an edit has changed nothing. Editors end the last line; a secret of one line has no such end.
  func equals(_ edited: borrowing SecretBytes) throws -> Bool {
    try stored.withLock { stored in
      guard let before = stored.take() else { return edited.isEmpty }
      let isSame = edited == before
      let isEnded = try path.isSecret && !path.isView && edited == before.endingLine()
      stored = consume before
      return isSame || isEnded
    }
  }

  /// Stores another value in its place.
  ///
  /// - Throws: `Failure` where another program has stored a value since: that is not replaced, and counts as the present one
  ///   from then on.
  func replace(with edited: borrowing SecretBytes) throws {
    var now = try Self.fetch(path, session)
    let isSame = stored.withLock { stored in
      let isSame = SecretBytes.areEqual(now, stored)
      stored = now.take()
      return isSame
    }
    guard isSame else {
      throw Failure(path.string, "another program has changed it meanwhile; nothing was written")
    }
    try session.write(edited.span, to: path)
  }

  func wipe() {
    stored.withLock { $0 = nil }
  }

  private static func fetch(_ path: TreePath, _ session: TreeSession) throws -> SecretBytes? {
    guard let node = try session.existingNode(at: path) else {
      guard path.canHoldAValue else { throw Failure(path.string, StoreError.notFound) }
      return nil
    }
    guard !node.isDirectory else { throw Failure(path.string, StoreError.isDirectory) }
    return try session.secret(at: path)
  }
}

extension TreePath {
  /// Whether a key or a secret can stand there.
  fileprivate var canHoldAValue: Bool {
    switch components.first {
    case "defaults": components.count == 3
    case "templates": components.count == 2
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
