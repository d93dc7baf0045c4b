package import Model

/// An item as its metadata blob holds it, with what the vault itself keeps there.
package struct ItemRecord {
  /// The largest encoding that is stored, in bytes.
  package static let largestSize = 1 << 20

  package var item: Item
  /// `VaultKeys.witness` of a row of format 1.
  package var witness: Witness?
  /// The revision that the secret is sealed to.
  package var secretRevision: UInt64
  /// The item that this one is an attachment of.
  package var owner: ItemKey?
  /// The revisions of the item's earlier versions, ascending.
  package var versions: [UInt64] = []
  /// Secrets beside the main one, under the same rules.
  package var furtherSecrets: [FurtherSecret] = []
  /// When and by what it was replaced; nil: it is the item as it is now.
  package var replacement: Replacement?

  package init(
    item: Item, witness: Witness? = nil, secretRevision: UInt64, owner: ItemKey? = nil,
    versions: [UInt64] = [],
    furtherSecrets: [FurtherSecret] = []
  ) {
    (self.item, self.witness, self.secretRevision) = (item, witness, secretRevision)
    (self.owner, self.versions, self.furtherSecrets) = (owner, versions, furtherSecrets)
  }

  /// A secret beside an item's main one.
  package struct FurtherSecret: Equatable {
    /// 1: the item's one-time codes, an `otpauth:` URI. Others are reserved.
    package var part: UInt8
    /// The revision that it is sealed to.
    package var revision: UInt64
    /// In bytes.
    package var size: UInt64
    /// When it was stored last.
    package var modified: Timestamp
  }

  /// The end of a version.
  package struct Replacement: Equatable {
    package var time: Timestamp
    /// `VersionChanges` as a byte: what the change was that replaced it.
    package var changes: UInt8

    package init(time: Timestamp, changes: UInt8) {
      (self.time, self.changes) = (time, changes)
    }
  }

  enum Tag {
    static let witness: UInt8 = 1
    static let secretRevision: UInt8 = 2
    static let accessibility: UInt8 = 3
    static let size: UInt8 = 4
    static let created: UInt8 = 5
    static let modified: UInt8 = 6
    static let itemClass: UInt8 = 16
    static let service: UInt8 = 17
    static let account: UInt8 = 18
    static let server: UInt8 = 19
    static let domain: UInt8 = 20
    static let `protocol`: UInt8 = 21
    static let authenticationType: UInt8 = 22
    static let port: UInt8 = 23
    static let path: UInt8 = 24
    static let otherLabel: UInt8 = 25
    static let label: UInt8 = 32
    static let access: UInt8 = 33
    static let programs: UInt8 = 34
    static let keepsLineEnd: UInt8 = 35
    static let attribute: UInt8 = 36
    static let owner: UInt8 = 37
    static let version: UInt8 = 38
    static let furtherSecret: UInt8 = 39
    static let replacement: UInt8 = 40
  }
}

extension ItemRecord {
  /// The record as fields, ascending by tag, attributes by name.
  package var encoded: [UInt8] {
    var writer = FieldWriter(capacity: 256)
    if let witness { writer.put(Tag.witness, witness.bytes) }
    writer.put(Tag.secretRevision, secretRevision)
    writer.put(Tag.accessibility, item.accessibility.code)
    writer.put(Tag.size, UInt64(item.size))
    writer.put(Tag.created, Self.encode(item.created))
    writer.put(Tag.modified, Self.encode(item.modified))
    Self.put(item.identity, into: &writer)
    if let label = item.label { writer.put(Tag.label, label.utf8) }
    if !item.access.isEmpty { writer.put(Tag.access, item.access.flags.map(\.code)) }
    if let programs = item.programs { writer.put(Tag.programs, programs.utf8) }
    if item.keepsLineEnd { writer.put(Tag.keepsLineEnd, CollectionOfOne(1)) }
    for (name, value) in item.attributes.sorted(by: { $0.key < $1.key }) {
      writer.put(Tag.attribute, Self.encode(attribute: name, value))
    }
    if let owner { writer.put(Tag.owner, owner) }
    for revision in versions { writer.put(Tag.version, revision) }
    for secret in furtherSecrets { writer.put(Tag.furtherSecret, Self.encode(secret)) }
    if let replacement { writer.put(Tag.replacement, Self.encode(replacement)) }
    return writer.bytes
  }

  /// The fields of an identity; also what its lookup tag is made of.
  package static func put(_ identity: ItemIdentity, into writer: inout FieldWriter) {
    switch identity {
    case .generic(let service, let account):
      writer.put(Tag.itemClass, CollectionOfOne(1))
      writer.put(Tag.service, service.utf8)
      writer.put(Tag.account, account.utf8)
    case .internet(let identity):
      writer.put(Tag.itemClass, CollectionOfOne(2))
      put(identity, into: &writer)
    case .other(let label):
      writer.put(Tag.itemClass, CollectionOfOne(3))
      writer.put(Tag.otherLabel, label.utf8)
    }
  }

  private static func put(_ identity: InternetIdentity, into writer: inout FieldWriter) {
    writer.put(Tag.account, identity.account.utf8)
    writer.put(Tag.server, identity.server.utf8)
    if let domain = identity.domain { writer.put(Tag.domain, domain.utf8) }
    if let name = identity.protocol { writer.put(Tag.protocol, name.utf8) }
    if let type = identity.authenticationType { writer.put(Tag.authenticationType, type.utf8) }
    if let port = identity.port { writer.put(Tag.port, port) }
    if let path = identity.path { writer.put(Tag.path, path.utf8) }
  }

  package static func encode(_ time: Timestamp) -> [UInt8] {
    var writer = FieldWriter(capacity: 12)
    writer.put(raw: UInt64(bitPattern: time.seconds))
    writer.put(raw: time.nanoseconds)
    return writer.bytes
  }

  private static func encode(_ secret: FurtherSecret) -> [UInt8] {
    var writer = FieldWriter(capacity: 29)
    writer.put(raw: secret.part)
    writer.put(raw: secret.revision)
    writer.put(raw: secret.size)
    writer.put(raw: encode(secret.modified))
    return writer.bytes
  }

  private static func encode(_ replacement: Replacement) -> [UInt8] {
    var writer = FieldWriter(capacity: 13)
    writer.put(raw: encode(replacement.time))
    writer.put(raw: replacement.changes)
    return writer.bytes
  }

  private static func encode(attribute name: ExactString, _ value: [UInt8]) -> [UInt8] {
    var writer = FieldWriter(capacity: name.utf8.count + value.count + 4)
    writer.put(raw: UInt32(name.utf8.count))
    writer.put(raw: name.utf8)
    writer.put(raw: value)
    return writer.bytes
  }
}

extension ItemRecord.FurtherSecret {
  /// The `otpauth:` URI.
  package static let otpauth: UInt8 = 1
}

extension ItemRecord {
  private var indexOfOtpauth: Int? { furtherSecrets.firstIndex { $0.part == FurtherSecret.otpauth } }

  /// Where the row of the `otpauth:` URI is; nil: there is none.
  package func placeOfOtpauth(_ key: ItemKey) -> SecretPlace? {
    indexOfOtpauth.map { index in
      SecretPlace(item: key, part: FurtherSecret.otpauth, revision: furtherSecrets[index].revision)
    }
  }

  /// `revision`: which the URI is sealed to.
  package mutating func setOtpauth(_ secret: Model.FurtherSecret?, revision: UInt64) {
    furtherSecrets.removeAll { $0.part == FurtherSecret.otpauth }
    guard let secret else { return }
    let entry = FurtherSecret(
      part: FurtherSecret.otpauth, revision: revision, size: UInt64(clamping: secret.size),
      modified: secret.modified)
    furtherSecrets.insert(entry, at: 0)
  }

  /// The record says which further secrets there are, and how long they are; the item, when it was changed.
  package mutating func settleOtpauth() {
    if let index = indexOfOtpauth, let modified = item.otpauth?.modified {
      furtherSecrets[index].modified = modified
    }
    item.otpauth = otpauth
  }

  package var otpauth: Model.FurtherSecret? {
    indexOfOtpauth.map { index in
      let secret = furtherSecrets[index]
      return Model.FurtherSecret(size: Int(clamping: secret.size), modified: secret.modified)
    }
  }
}

extension ItemRecord {
  /// Where the rows of its secrets are.
  package func places(_ key: ItemKey) -> [SecretPlace] {
    [SecretPlace(item: key, revision: secretRevision)]
      + furtherSecrets.map { SecretPlace(item: key, part: $0.part, revision: $0.revision) }
  }

  /// A secret is sealed to another revision from now on.
  package mutating func setRevision(_ revision: UInt64, ofPart part: UInt8) {
    if part == SecretPlace.main { secretRevision = revision }
    for index in furtherSecrets.indices where furtherSecrets[index].part == part {
      furtherSecrets[index].revision = revision
    }
  }
}
