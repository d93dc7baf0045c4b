import Model

/// The newest generation of a vault that this device has seen, kept outside the vault's folder: a vault
/// that is older was put back.
///
/// It may lag behind (a crash between a commit and its anchor), never lead. Whoever can roll back both
/// files is not found out.
struct Anchor {
  private static let magic = Array("KHANCHR1".utf8)
  private static let length = 8 + 16 + 8 + 32

  let path: String
  private let keys: VaultKeys
  /// 0: never written.
  private(set) var generation: UInt64 = 0
  /// The file does not authenticate.
  private(set) var isDamaged = false

  init(_ path: String, _ keys: VaultKeys) throws(StoreError) {
    self.path = path
    self.keys = keys
    PrivateFile.removeLeftovers(of: path)
    try reload()
  }

  /// Reads what other processes wrote. A file of zeros counts as none: a power loss can leave that.
  mutating func reload() throws(StoreError) {
    guard let bytes = try PrivateFile.read(path), bytes.contains(where: { $0 != 0 }) else { return }
    let content = Array(bytes.dropLast(32))
    guard bytes.count == Self.length, content.prefix(24).elementsEqual(Self.magic + keys.store),
      keys.isAnchorCode(Array(bytes.suffix(32)), of: content)
    else {
      isDamaged = true
      return
    }
    isDamaged = false
    generation = max(generation, content.suffix(8).reduce(0) { $0 << 8 | UInt64($1) })
  }

  /// Moves the anchor forward.
  mutating func advance(to newer: UInt64) throws(StoreError) {
    guard newer > generation || isDamaged else { return }
    var writer = FieldWriter(capacity: Self.length)
    writer.put(raw: Self.magic)
    writer.put(raw: keys.store)
    writer.put(raw: max(newer, generation))
    let code = keys.anchorCode(writer.bytes)
    try PrivateFile.replace(path, with: writer.bytes + code)
    generation = max(newer, generation)
    isDamaged = false
  }
}
