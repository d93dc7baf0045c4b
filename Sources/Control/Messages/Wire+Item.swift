import Model

extension WireWriter {
  mutating func put(_ item: Item) {
    put(item.id)
    put(item.identity)
    put(item.label) { $0.put($1) }
    put(item.created)
    put(item.modified)
    put(Int64(item.size))
    put(item.accessibility.rawValue)
    put(item.access.flags) { $0.put($1.rawValue) }
    put(item.programs) { $0.put($1) }
    put(item.keepsLineEnd)
    put(item.isSealed)
    put(Array(item.attributes)) {
      $0.put($1.key)
      $0.put($1.value)
    }
    put(item.collection) { $0.put($1) }
    put(item.otpauth) {
      $0.put(Int64($1.size))
      $0.put($1.modified)
    }
  }

  mutating func put(_ time: Timestamp) {
    put(time.seconds)
    put(time.nanoseconds)
  }

  mutating func put(_ identity: ItemIdentity) {
    put(identity.itemClass.rawValue)
    switch identity {
    case .generic(let service, let account):
      put(service)
      put(account)
    case .internet(let identity): put(identity)
    case .other(let label): put(label)
    }
  }

  private mutating func put(_ identity: InternetIdentity) {
    put(identity.server)
    put(identity.account)
    for part in [identity.domain, identity.protocol, identity.authenticationType, identity.path] {
      put(part) { $0.put($1) }
    }
    put(identity.port) { $0.put($1) }
  }
}

extension WireReader {
  mutating func item() throws(StoreError) -> Item {
    let (id, identity) = (try itemID(), try identity())
    let label = try optionalName()
    let (created, modified) = (try time(), try time())
    var item = Item(id: id, identity: identity, label: label, created: created, modified: modified)
    item.size = Int(try integer(Int64.self))
    guard item.size >= 0 else { throw Self.unreadable }
    item.accessibility = try word(Accessibility.self)
    item.access = AccessFlags(try list { (reader) throws(StoreError) in try reader.word() })
    item.programs = try optionalName()
    item.keepsLineEnd = try flag()
    item.isSealed = try flag()
    let attributes = try list { (reader) throws(StoreError) in (try reader.name(), try reader.content()) }
    item.attributes = Dictionary(attributes) { _, last in last }
    item.collection = try optionalName()
    item.otpauth = try optional { (reader) throws(StoreError) in try reader.furtherSecret() }
    return item
  }

  private mutating func furtherSecret() throws(StoreError) -> FurtherSecret {
    let size = Int(try integer(Int64.self))
    guard size >= 0 else { throw Self.unreadable }
    return FurtherSecret(size: size, modified: try time())
  }

  mutating func optionalName() throws(StoreError) -> ExactString? {
    try optional { (reader) throws(StoreError) in try reader.name() }
  }

  mutating func time() throws(StoreError) -> Timestamp {
    Timestamp(seconds: try integer(), nanoseconds: try integer())
  }

  private mutating func word<Word: RawRepresentable<String>>(
    _ type: Word.Type = Word.self
  ) throws(StoreError) -> Word {
    guard let word = Word(rawValue: try name().string) else { throw Self.unreadable }
    return word
  }

  mutating func identity() throws(StoreError) -> ItemIdentity {
    switch try word(ItemClass.self) {
    case .generic: .generic(service: try name(), account: try name())
    case .internet: .internet(try internetIdentity())
    case .other: .other(label: try name())
    }
  }

  private mutating func internetIdentity() throws(StoreError) -> InternetIdentity {
    var identity = InternetIdentity(server: try name(), account: try name())
    identity.domain = try optionalName()
    identity.protocol = try optionalName()
    identity.authenticationType = try optionalName()
    identity.path = try optionalName()
    identity.port = try optional { (reader) throws(StoreError) in try reader.integer() }
    return identity
  }
}
