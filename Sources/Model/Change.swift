/// One change of a store, without the value that changed.
public struct Change: Hashable, Sendable {
  /// The kind of a change. `attributes` changes an item without its secret, `locked` and `unlocked` the keychain.
  public enum Kind: String, Sendable {
    case created
    case modified
    case deleted
    case moved
    case attributes
    case locked
    case unlocked
    /// The observer was too slow: earlier changes are left out, so everything has to be read again.
    case overflow
  }

  /// The subject of a change.
  public enum Subject: Hashable, Sendable {
    case suite(ExactString)
    case key(suite: ExactString, key: ExactString)
    case item(ItemID, ItemIdentity)
    /// The `otpauth:` URI of an item.
    case otpauth(ItemID, ItemIdentity)
    /// A sealed document of Keyhole's own, by its name, such as `views/myapp`.
    case document(ItemID, ExactString)
    /// All of it: it was locked or unlocked.
    case keychain
    case everything
  }

  /// The origin of a change: this process through its store, or another one.
  public enum Origin: String, Sendable {
    case local
    /// This process, by a write to another file than the subject's, of a view of it, or by a call of the Secret Service.
    case indirect
    case external
  }

  /// Creation, new value, deletion, move, new attributes, or the keychain's lock.
  public var kind: Kind
  /// The subject of the change: for `moved`, under its new name.
  public var subject: Subject
  /// Where a `moved` subject was before.
  public var previous: Subject?
  /// This process or another one.
  public var origin: Origin

  /// `previous`: for `moved` the name before; else nil.
  public init(_ kind: Kind, _ subject: Subject, previous: Subject? = nil, origin: Origin) {
    self.kind = kind
    self.subject = subject
    self.previous = previous
    self.origin = origin
  }
}
