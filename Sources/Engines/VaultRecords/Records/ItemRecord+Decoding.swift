package import Model
import Platform

extension ItemRecord {
  /// - Throws: `damaged` for anything that `encoded` does not make.
  package init(_ bytes: Span<UInt8>, id: ItemID) throws {
    var parts = Parts()
    var reader = FieldReader(bytes)
    while let field = try reader.next() { try parts.take(field) }
    let nowhere = Timestamp(seconds: 0)
    var item = Item(
      id: id, identity: try parts.identity(), label: parts.label, created: parts.created ?? nowhere,
      modified: parts.modified ?? nowhere, size: parts.size)
    item.accessibility = try parts.accessibility.orDamaged()
    item.access = parts.access
    item.programs = parts.programs
    item.keepsLineEnd = parts.keepsLineEnd
    item.attributes = parts.attributes
    self.init(
      item: item, witness: parts.witness,
      secretRevision: try parts.secretRevision.orDamaged(), owner: parts.owner, versions: parts.versions,
      furtherSecrets: parts.furtherSecrets)
    replacement = parts.replacement
    self.item.otpauth = otpauth
  }

  /// The fields of a record while they are read.
  private struct Parts {
    var witness: Witness?
    var secretRevision: UInt64?
    var accessibility: Accessibility?
    var size = 0
    var created: Timestamp?
    var modified: Timestamp?
    var itemClass: UInt8?
    var service: ExactString?
    var otherLabel: ExactString?
    var server: ExactString?
    var account: ExactString?
    var domain: ExactString?
    var `protocol`: ExactString?
    var authenticationType: ExactString?
    var port: UInt16?
    var path: ExactString?
    var label: ExactString?
    var access: AccessFlags = []
    var programs: ExactString?
    var keepsLineEnd = false
    var attributes: [ExactString: [UInt8]] = [:]
    var owner: ItemKey?
    var versions: [UInt64] = []
    var furtherSecrets: [FurtherSecret] = []
    var replacement: Replacement?

    mutating func take(_ field: Field) throws(StoreError) {
      switch field.tag {
      case Tag.witness: witness = try ItemRecord.witness(field)
      case Tag.secretRevision: secretRevision = try field.integer(UInt64.self)
      case Tag.accessibility: accessibility = try Accessibility(code: field.integer(UInt8.self))
      case Tag.size: size = try Int(exactly: field.integer(UInt64.self)).orDamaged()
      case Tag.created: created = try ItemRecord.time(field)
      case Tag.modified: modified = try ItemRecord.time(field)
      case Tag.label: label = try field.string()
      case Tag.access: access = try ItemRecord.access(field)
      case Tag.programs: programs = try field.string()
      case Tag.keepsLineEnd: keepsLineEnd = try field.integer(UInt8.self) == 1
      case Tag.attribute: try takeAttribute(field)
      case Tag.owner: owner = try ItemKey(field.bytes).orDamaged()
      case Tag.version: versions.append(try field.integer(UInt64.self))
      case Tag.furtherSecret: furtherSecrets.append(try ItemRecord.furtherSecret(field))
      case Tag.replacement: replacement = try ItemRecord.replacement(field)
      default: try takeIdentity(field)
      }
    }

    private mutating func takeIdentity(_ field: Field) throws(StoreError) {
      switch field.tag {
      case Tag.itemClass: itemClass = try field.integer(UInt8.self)
      case Tag.service: service = try field.string()
      case Tag.account: account = try field.string()
      case Tag.server: server = try field.string()
      case Tag.domain: domain = try field.string()
      case Tag.protocol: `protocol` = try field.string()
      case Tag.authenticationType: authenticationType = try field.string()
      case Tag.port: port = try field.integer(UInt16.self)
      case Tag.path: path = try field.string()
      case Tag.otherLabel: otherLabel = try field.string()
      default: throw .damaged(what: "fields")
      }
    }

    private mutating func takeAttribute(_ field: Field) throws(StoreError) {
      var reader = FieldReader(field.bytes)
      let count = try reader.integer(UInt32.self)
      let name = try Field(tag: 0, bytes: reader.take(Int(count))).string()
      attributes[name] = reader.remainder.array
    }

    func identity() throws(StoreError) -> ItemIdentity {
      switch itemClass {
      case 1: .generic(service: try service.orDamaged(), account: try account.orDamaged())
      case 2: .internet(try internetIdentity())
      case 3: .other(label: try otherLabel.orDamaged())
      default: throw .damaged(what: "fields")
      }
    }

    private func internetIdentity() throws(StoreError) -> InternetIdentity {
      InternetIdentity(
        server: try server.orDamaged(), account: try account.orDamaged(), domain: domain,
        protocol: `protocol`, authenticationType: authenticationType, port: port, path: path)
    }
  }
}

extension ItemRecord {
  package static func witness(_ field: Field) throws(StoreError) -> Witness {
    var reader = FieldReader(field.bytes)
    return try Witness(reading: &reader)
  }

  private static func furtherSecret(_ field: Field) throws(StoreError) -> FurtherSecret {
    var reader = FieldReader(field.bytes)
    let part = try reader.integer(UInt8.self)
    guard part != SecretPlace.main else { throw .damaged(what: "fields") }
    let (revision, size) = (try reader.integer(UInt64.self), try reader.integer(UInt64.self))
    return FurtherSecret(part: part, revision: revision, size: size, modified: try time(&reader))
  }

  private static func replacement(_ field: Field) throws(StoreError) -> Replacement {
    var reader = FieldReader(field.bytes)
    return Replacement(time: try time(&reader), changes: try reader.integer(UInt8.self))
  }

  package static func time(_ field: Field) throws(StoreError) -> Timestamp {
    var reader = FieldReader(field.bytes)
    return try time(&reader)
  }

  package static func time(_ reader: inout FieldReader) throws(StoreError) -> Timestamp {
    let seconds = Int64(bitPattern: try reader.integer(UInt64.self))
    return Timestamp(seconds: seconds, nanoseconds: try reader.integer(UInt32.self))
  }

  private static func access(_ field: Field) throws(StoreError) -> AccessFlags {
    var flags: [AccessFlags.Flag] = []
    for code in field.bytes.array {
      flags.append(try AccessFlags.Flag(code: code).orDamaged())
    }
    return AccessFlags(flags)
  }
}

extension Optional {
  package func orDamaged() throws(StoreError) -> Wrapped {
    guard let self else { throw .damaged(what: "fields") }
    return self
  }
}
