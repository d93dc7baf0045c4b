package import Crypto
package import Model
import Platform
package import VaultRecords

/// The newest state of a vault that this device has seen, kept outside the vault's folder: a vault that is older was
/// put back.
///
/// It may lag behind (a crash between a commit and its anchor), never lead. Nothing tells where both files were put
/// back together.
///
/// The file has three records, a disk's sector each. A process replaces the file with its first commit, and writes the two
/// later records in turn, in place and without waiting for the disk: that takes a fiftieth of the time. Of a record that a
/// power cut or another reader meets half-written, the one before it counts.
package struct Anchor {
  private static let magicOfOne = Array("KHANCHR1".utf8)
  private static let magic = Array("KHANCHR2".utf8)
  private static let codeLength = 32
  private static let recordLength = 84
  /// As much as a disk writes in one step, in bytes.
  private static let sector = 512

  package let path: String
  private let store: [UInt8]
  /// nil: never written, as far as this process knows.
  package private(set) var state: VaultState?
  /// The file does not authenticate.
  package private(set) var isDamaged = false
  /// This process has replaced the file.
  private var isOwn = false

  package var generation: UInt64 { state?.generation ?? 0 }

  package init(_ directory: VaultDirectory, store: [UInt8]) {
    path = directory.anchor(store: store)
    self.store = store
    PrivateFile.removeLeftovers(of: path)
  }

  /// The file's bytes; empty where there is none. A file of zeros counts as none: a power loss can leave that.
  package func read() -> [UInt8] {
    guard let bytes = try? PrivateFile.read(path), bytes.contains(where: { $0 != 0 }) else { return [] }
    return bytes
  }

  /// Takes what `read` found, where that is newer.
  package mutating func take(_ bytes: [UInt8], _ key: SymmetricKey) {
    guard !bytes.isEmpty else { return }
    guard let found = newest(bytes, key) else {
      isDamaged = true
      return
    }
    isDamaged = false
    if found.generation >= generation { state = found }
  }

  /// Moves the anchor forward. - Throws: `noSpace`, `readOnly`, `system`.
  package mutating func advance(to newer: VaultState, _ key: SymmetricKey) throws(StoreError) {
    guard state == nil || newer.generation > generation || isDamaged else { return }
    let isNew = state == nil
    let latest = newer.generation >= generation ? newer : state ?? newer
    let record = encoded(latest, key)
    if isNew || isDamaged || !isOwn || !overwrite(record, latest.generation) {
      let rest = [UInt8](repeating: 0, count: 3 * Self.sector - record.count)
      try PrivateFile.replace(path, with: record + rest)
      isOwn = true
    }
    // A new one has to be there before the vault says so, and its folder may be as new.
    if isNew { try PrivateFile.synchronizeFolders(of: path) }
    state = latest
    isDamaged = false
  }

  /// Writes one of the later records. False: the file is not there, or is an earlier version's.
  private func overwrite(_ record: [UInt8], _ generation: UInt64) -> Bool {
    let offset = generation % 2 == 0 ? Self.sector : 2 * Self.sector
    guard let file = try? PrivateFile.open(path, .writing),
      (try? file.status)?.size == Int64(3 * Self.sector), (try? file.write(record, at: Int64(offset))) != nil
    else { return false }
    return true
  }
}

extension Anchor {
  private func encoded(_ state: VaultState, _ key: SymmetricKey) -> [UInt8] {
    var writer = FieldWriter(capacity: 96)
    writer.put(raw: Self.magic)
    writer.put(raw: store)
    writer.put(raw: state.generation)
    writer.put(raw: ItemRecord.encode(state.changed))
    writer.put(raw: state.items)
    return writer.bytes + Array(HMAC<SHA256>.authenticationCode(for: writer.bytes, using: key))
  }

  /// The newest state of a file's records; nil: the first one, which is never written in place, does not authenticate.
  private func newest(_ bytes: [UInt8], _ key: SymmetricKey) -> VaultState? {
    guard bytes.count == 3 * Self.sector else { return parse(bytes, key) }
    let states = stride(from: 0, to: bytes.count, by: Self.sector).map { start in
      parse(Array(bytes[start...].prefix(Self.recordLength)), key)
    }
    guard states[0] != nil else { return nil }
    return states.compactMap { $0 }.max { $0.generation < $1.generation }
  }

  /// nil: it is not this vault's, or was changed.
  private func parse(_ bytes: [UInt8], _ key: SymmetricKey) -> VaultState? {
    let content = Array(bytes.dropLast(Self.codeLength))
    let isAuthentic = HMAC<SHA256>.isValidAuthenticationCode(
      bytes.suffix(Self.codeLength), authenticating: content, using: key)
    guard isAuthentic, content.dropFirst(8).starts(with: store) else { return nil }
    return parse(content.prefix(8), content.span.extracting(droppingFirst: 24))
  }

  private func parse(_ magic: ArraySlice<UInt8>, _ numbers: Span<UInt8>) -> VaultState? {
    var reader = FieldReader(numbers)
    guard let generation = try? reader.integer(UInt64.self) else { return nil }
    let nothing = VaultState(generation: generation, changed: Timestamp(seconds: 0), items: 0)
    if magic.elementsEqual(Self.magicOfOne) { return nothing }
    guard magic.elementsEqual(Self.magic), let seconds = try? reader.integer(UInt64.self),
      let nanoseconds = try? reader.integer(UInt32.self), let items = try? reader.integer(UInt64.self)
    else { return nil }
    let changed = Timestamp(seconds: Int64(bitPattern: seconds), nanoseconds: nanoseconds)
    return VaultState(generation: generation, changed: changed, items: items)
  }
}
