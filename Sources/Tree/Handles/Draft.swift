import Model

/// The content of an open file that is not in its store, or not committed.
///
/// Each case is a state of its own: an addition without anything written, or an emptied file with content, can't be
/// expressed.
enum Draft: Sendable {
  /// Nothing was written. nil: what the file was opened on has not been read yet.
  case untouched(Content?)
  /// O_TRUNC, or a creation: empty, though nothing was written. The close of a copy leaves it alone; fsync(2) and the
  /// last close commit it.
  case emptied
  /// Bytes of O_APPEND, which go to the end of the value of the moment of the commit. `base`: the value, if it was read.
  case appended(Content, base: Content?)
  /// The whole content.
  case rewritten(Content, isCommitted: Bool)
  /// The content is the scratch file's, which all handles share.
  case shared(isChanged: Bool)
}

/// The content for a commit: taken from a draft at one moment, and stored while the draft may go on changing.
enum DraftPart: Sendable {
  case shared
  case addition(Content)
  case whole(Content)
}

extension Draft {
  /// There is something that no commit has stored.
  var isUncommitted: Bool {
    switch self {
    case .untouched: false
    case .emptied, .appended: true
    case .rewritten(_, let isCommitted): !isCommitted
    case .shared(let isChanged): isChanged
    }
  }

  /// Something was written, so that a flush commits it.
  var isWritten: Bool {
    if case .emptied = self { return false }
    return isUncommitted
  }

  /// The value that the file was opened on has to be read before its bytes are known.
  var lacksBase: Bool {
    switch self {
    case .untouched(let base), .appended(_, let base): base == nil
    case .emptied, .rewritten, .shared: false
    }
  }

  /// How many bytes were added to a value; nil: what it holds is not an addition.
  var addition: Int? {
    if case .appended(let added, _) = self { return added.count }
    return nil
  }

  /// The length of what it shows; `stored` is that of the value. Of `shared` the scratch file knows.
  func count(stored: Int) -> Int {
    switch self {
    case .untouched(let base): base?.count ?? stored
    case .emptied: 0
    case .appended(let added, let base): (base?.count ?? stored) + added.count
    case .rewritten(let content, _): content.count
    case .shared: stored
    }
  }

  /// The bytes that it shows, where its base is there; nil: none.
  func content() throws(StoreError) -> Content? {
    switch self {
    case .untouched(let base): return base
    case .rewritten(let content, _): return content
    case .appended(let added, let base):
      guard var joined = base else { return nil }
      try added.withBytes { (bytes) throws(StoreError) in try joined.append(bytes) }
      return joined
    case .emptied, .shared: return nil
    }
  }
}

// MARK: - Reading

extension Draft {
  /// Takes what the file was opened on, unless it is there already.
  mutating func take(base new: Content) {
    switch self {
    case .untouched(nil): self = .untouched(new)
    case .appended(let added, nil): self = .appended(added, base: new)
    default: break
    }
  }

  /// Takes `grown` for the snapshot of a reader where the present one is its beginning. Returns whether it is.
  mutating func grow(to grown: Content) -> Bool {
    guard case .untouched(let base?) = self, base.isBeginning(of: grown) else { return false }
    self = .untouched(grown)
    return true
  }
}

// MARK: - Writing

extension Draft {
  /// Changes the whole content, whose base has to be there.
  mutating func rewrite(
    secret isSecret: Bool, _ change: (inout Content) throws(StoreError) -> Void
  ) throws(StoreError) {
    var whole = try Content.empty(secret: isSecret)
    if let content = try content() { whole = content }
    // Only one may refer to the bytes, or the change would copy them.
    self = .emptied
    defer { self = .rewritten(whole, isCommitted: false) }
    try change(&whole)
  }

  /// Adds bytes to what O_APPEND has added before.
  mutating func append(_ bytes: Span<UInt8>, secret isSecret: Bool) throws(StoreError) {
    var added = try Content.empty(secret: isSecret)
    var base: Content?
    switch self {
    case .untouched(let content): base = content
    case .appended(let before, let content): (added, base) = (before, content)
    case .emptied, .rewritten, .shared: return
    }
    self = .emptied
    defer { self = .appended(added, base: base) }
    try added.append(bytes)
  }
}

// MARK: - Committing

extension Draft {
  /// The part that a commit has to store now; nil: nothing.
  ///
  /// `unwritten`: also content that was not changed since it was read or committed.
  func part(unwritten: Bool, secret isSecret: Bool) throws(StoreError) -> DraftPart? {
    switch self {
    case .untouched(let base): unwritten ? base.map(DraftPart.whole) : nil
    case .emptied: .whole(try .empty(secret: isSecret))
    case .appended(let added, _): .addition(added)
    case .rewritten(let content, let isCommitted): isCommitted && !unwritten ? nil : .whole(content)
    case .shared: .shared
    }
  }

  /// A commit has stored `part`, and nothing was written since.
  mutating func settle(_ part: DraftPart) {
    switch (self, part) {
    case (.emptied, .whole(let content)), (.rewritten(let content, _), _):
      self = .rewritten(content, isCommitted: true)
    // Others may have added something too: what it shows is what is stored now.
    case (.appended, _): self = .untouched(nil)
    case (.shared, _): self = .shared(isChanged: false)
    case (.untouched, _), (.emptied, _): break
    }
  }

  /// A commit has stored the first bytes of the addition; what was added since waits for the next one.
  mutating func settle(addition stored: Content, secret isSecret: Bool) throws(StoreError) {
    guard case .appended(let added, _) = self else { return }
    var rest = try Content.empty(secret: isSecret)
    try added.withBytes { (bytes) throws(StoreError) in
      try rest.append(bytes.slice(at: stored.count, count: bytes.count))
    }
    self = .appended(rest, base: nil)
  }
}
