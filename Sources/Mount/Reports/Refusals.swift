public import Model
import Synchronization
import Tree

/// The latest refusals with their reasons, for `keyhole status`: an errno says less.
public final class Refusals: Sendable {
  /// One refusal. It never holds content.
  public struct Entry: Sendable {
    /// When the operation was refused.
    public let time: Timestamp
    /// The path from the top of the tree, without a leading slash.
    public let path: String
    /// The error's message.
    public let reason: String
    /// Whether a locked keychain was the reason, and it was unlocked since.
    public var isSettled: Bool { lock == .unlocked }

    fileprivate var lock = Lock.other
  }

  /// Whether the keychain's lock was the reason of a refusal, and whether it was unlocked since.
  fileprivate enum Lock: Sendable { case other, locked, unlocked }

  private static let limit = 20
  private let entries = Mutex<[Entry]>([])

  init() {}

  /// The last ones, the newest last.
  public var recent: [Entry] { entries.withLock { $0 } }

  /// One attempt is refused more than once, by the write and by the close: it stands there once.
  ///
  /// `isByLock`: because the keychain is locked.
  func note(path: String, reason: String, isByLock: Bool = false) {
    entries.withLock { entries in
      if let last = entries.last, last.path == path, last.reason == reason { entries.removeLast() }
      if entries.count == Self.limit { entries.removeFirst() }
      entries.append(Entry(time: .now, path: path, reason: reason, lock: isByLock ? .locked : .other))
    }
  }

  /// The keychain is open again: what its lock has refused would not be refused now.
  private func settle() {
    entries.withLock { entries in
      for index in entries.indices where entries[index].lock == .locked { entries[index].lock = .unlocked }
    }
  }

  /// Those of a view that has changed its name go along, and those of a view that is gone go with it, also those of its template. Those of
  /// a locked keychain are settled when it is unlocked.
  func follow(_ change: Change) {
    if case .keychain = change.subject, change.kind == .unlocked { return settle() }
    guard case .document(_, let name) = change.subject, change.kind == .moved || change.kind == .deleted
    else {
      return
    }
    let gone = ViewNames(name)
    guard change.kind == .moved, case .document(_, let former)? = change.previous else {
      return entries.withLock { $0.removeAll { gone.contains($0.path) } }
    }
    let old = ViewNames(former)
    entries.withLock { entries in
      // The view that had the new name is replaced.
      entries.removeAll { gone.contains($0.path) }
      entries = entries.map { entry in
        Entry(
          time: entry.time, path: old.renamed(entry.path, to: gone), reason: entry.reason, lock: entry.lock)
      }
    }
  }

  func note(path: String, _ error: StoreError) {
    guard error.isWorthTelling else { return }
    note(path: path, reason: error.message, isByLock: error == .locked)
  }
}

/// The paths of a view and of its template.
private struct ViewNames {
  private let paths: [ExactString]

  init(_ document: ExactString) {
    let name = document.string.drop { $0 != "/" }
    paths = [document, ExactString("templates" + name)]
  }

  func contains(_ path: String) -> Bool { paths.contains(ExactString(path)) }

  func renamed(_ path: String, to new: ViewNames) -> String {
    paths.firstIndex(of: ExactString(path)).map { new.paths[$0].string } ?? path
  }
}

extension StoreError {
  /// Whether a person would want to know why; that a file is missing, or an attribute, explains itself.
  var isWorthTelling: Bool {
    switch self {
    case .notFound, .noSuchAttribute, .unsupported, .exists, .resultTooLarge, .isDirectory, .notDirectory:
      false
    default: true
    }
  }
}
