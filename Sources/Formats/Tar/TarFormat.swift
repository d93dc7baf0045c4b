public import Model
import SecretMemory

/// `--format tar`: the tree as files, with attributes as `tar --xattrs` keeps them (POSIX.1-2001 pax headers,
/// `SCHILY.xattr.user.…`). Unpacked into a mount, it is the same tree.
struct TarFormat {
  let codec: SettingCodec
  let paths: any TreePathCoding

  // MARK: Writing

  func write(_ contents: ExportContents, to sink: ByteSink) throws(FormatError) {
    let writer = TarWriter(sink: sink)
    for (suite, settings) in contents.suites {
      for setting in settings {
        let path = "defaults/\(paths.encode(suite))/\(paths.encode(setting.key))"
        let content = try codec.exported(setting.value)
        let type = ItemEntry.Attribute("user.keyhole.type", Array(setting.value.type.rawValue.utf8))
        try writer.header(path, .file, size: content.count, setting.modified, [type])
        try sink.write(content)
        try writer.pad(content.count)
      }
    }
    for item in contents.items {
      guard let secret = try item.secret() else { continue }
      try writer.header(item.path + "/", .folder, size: 0, item.modified, item.attributes)
      try writer.header(item.path + "/value", .file, size: secret.count, item.modified, [])
      try sink.write(secret.span)
      try writer.pad(secret.count)
      guard let uri = try item.otpauth?() else { continue }
      let path = "\(item.path)/\(ItemSecrets.otpauthName)"
      try writer.header(path, .file, size: uri.count, item.modified, [])
      try sink.write(uri.span)
      try writer.pad(uri.count)
    }
    try writer.finish()
  }

  // MARK: Reading

  func read(_ source: ByteSource) throws(FormatError) -> Contents {
    var contents = Contents()
    var folders: [String: [ItemEntry.Attribute]] = [:]
    var named: Set<String> = []
    var places: [String: Int] = [:]
    var uris: [String: SecretSlice] = [:]
    for member in try TarReader(source: source).members() {
      let parts = member.path.unicodeScalars.split(separator: "/").map { String($0) }.filter { $0 != "." }
      let path = parts.joined(separator: "/")
      let isItem = member.attributes.contains { $0.name.hasPrefix("user.") }
      switch (parts.first, parts.count, member.kind) {
      case ("defaults", 3, .file): contents.settings.append(try setting(member, parts, source))
      case ("keychain", 4...5, .file) where parts.last == "value":
        let folder = parts.dropLast().joined(separator: "/")
        let attributes = folders[folder] ?? member.attributes
        named.remove(folder)
        places[folder] = contents.items.count
        contents.items.append(try item(parts.dropLast(), attributes, SecretSlice(source, member.content)))
      case ("keychain", 4...5, .file) where parts.last == ItemSecrets.otpauthName:
        uris[parts.dropLast().joined(separator: "/")] = SecretSlice(source, member.content)
      case ("keychain", 1...4, .folder):
        folders[path] = member.attributes
        if isItem { named.insert(path) }
      case ("defaults", 1...2, .folder), (nil, _, .folder): continue
      default: throw FormatError("\(path) has no place in the tree")
      }
    }
    for (folder, uri) in uris {
      guard let place = places[folder] else { throw FormatError("\(folder) has `otpauth` and no `value`") }
      contents.items[place].otpauth = uri
    }
    guard let missing = named.min() else { return contents }
    throw FormatError("\(missing) has attributes and no `value`")
  }

  private func setting(
    _ member: TarReader.Member, _ parts: [String], _ source: ByteSource
  ) throws(FormatError) -> SettingEntry {
    let content = source.bytes(member.content)
    do throws(StoreError) {
      return SettingEntry(
        suite: try paths.decode(parts[1]), key: try paths.decode(parts[2]),
        value: try type(of: member).map { type throws(StoreError) in try codec.value(of: content, as: type) }
          ?? codec.inferred(from: content))
    } catch {
      throw FormatError("\(member.path): \(error.message)")
    }
  }

  /// nil: the archive does not say.
  private func type(of member: TarReader.Member) throws(StoreError) -> SettingType? {
    guard let attribute = member.attributes.first(where: { $0.name == "user.keyhole.type" }) else {
      return nil
    }
    guard let type = SettingType(rawValue: String(decoding: attribute.value, as: UTF8.self)) else {
      throw .invalidValue(reason: "its `keyhole.type` is unknown")
    }
    return type
  }

  /// The attributes say what it is; where there are none, its folders do.
  private func item(
    _ parts: ArraySlice<String>, _ attributes: [ItemEntry.Attribute], _ secret: SecretSlice
  ) throws(FormatError) -> ItemEntry {
    guard let itemClass = ItemClass(rawValue: parts[1]) else {
      throw FormatError("keychain/\(parts[1]) has no place in the tree")
    }
    if let entry = try? ItemEntry(itemClass, attributes, secret) { return entry }
    guard let identity = paths.identity(itemClass, Array(parts.dropFirst(2))) else {
      throw FormatError("\(parts.joined(separator: "/")) names no item")
    }
    return ItemEntry(identity, attributes.filter { !ItemIdentity.attributeNames.contains($0.name) }, secret)
  }
}

/// Names of the tree as they stand in paths, and back.
public protocol TreePathCoding: Sendable {
  /// The name as it stands in a path of the tree.
  func encode(_ name: ExactString) -> String

  /// - Throws: `invalidName` for what is no name of the tree, or a cut one.
  func decode(_ name: String) throws(StoreError) -> ExactString

  /// The identity that folders below a class name; nil: they name none.
  func identity(_ itemClass: ItemClass, _ folders: [String]) -> ItemIdentity?
}
