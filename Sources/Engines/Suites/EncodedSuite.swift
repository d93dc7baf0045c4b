import Model
import Store

/// A suite as XML, in pieces: a change of one key encodes that key again and copies the rest.
struct EncodedSuite: Sendable {
  /// Some entries, in the order of their keys, and where each one's bytes end.
  fileprivate struct Chunk: Sendable {
    var keys: [ExactString] = []
    var ends: [Int] = []
    var bytes: [UInt8] = []
  }

  private static let fullChunk = 128

  private var chunks: [Chunk] = []
  private(set) var byteCount = 0

  /// nil: XML has no way to say something in it.
  init?(_ settings: SharedDictionary<Setting>) {
    var writer = XMLWriter()
    var chunk = Chunk()
    for (key, value) in PropertyLists.sorted(settings.map { ($0.key, $0.value.value) }) {
      writer.entry(key, value, depth: 1)
      chunk.append(key, writer.takeBytes())
      guard chunk.keys.count == Self.fullChunk else { continue }
      add(chunk)
      chunk = Chunk()
    }
    if !chunk.keys.isEmpty { add(chunk) }
    if writer.isUnwritable { return nil }
  }

  /// Makes of the suite's text what it is after a change; false: XML has no way to say it.
  mutating func apply(_ changed: some Sequence<ExactString>, of settings: SharedDictionary<Setting>) -> Bool {
    for key in changed {
      guard set(key, to: settings[key]?.value) else { return false }
    }
    return true
  }

  /// The whole file.
  var document: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(byteCount + 300)
    bytes += XMLWriter.head
    guard !chunks.isEmpty else { return bytes + Array("<dict/>\n".utf8) + XMLWriter.tail }
    bytes += "<dict>\n".utf8
    for chunk in chunks { bytes += chunk.bytes }
    bytes += "</dict>\n".utf8
    return bytes + XMLWriter.tail
  }
}

extension EncodedSuite {
  private mutating func add(_ chunk: Chunk) {
    chunks.append(chunk)
    byteCount += chunk.bytes.count
  }

  private mutating func set(_ key: ExactString, to value: SettingValue?) -> Bool {
    var writer = XMLWriter()
    if let value { writer.entry(key, value, depth: 1) }
    if writer.isUnwritable { return false }
    if chunks.isEmpty { chunks.append(Chunk()) }
    let index = chunkIndex(of: key)
    byteCount -= chunks[index].bytes.count
    chunks[index].set(key, to: writer.takeBytes())
    byteCount += chunks[index].bytes.count
    balance(index)
    return true
  }

  /// The last chunk that begins with the key or before it, or the first one.
  private func chunkIndex(of key: ExactString) -> Int {
    max(chunks.partitionIndex { $0.keys.first.map { $0 <= key } ?? true } - 1, 0)
  }

  private mutating func balance(_ index: Int) {
    if chunks[index].keys.isEmpty {
      chunks.remove(at: index)
    } else if chunks[index].keys.count >= 2 * Self.fullChunk {
      chunks.insert(chunks[index].splitInHalf(), at: index + 1)
    }
  }
}

extension EncodedSuite.Chunk {
  fileprivate mutating func append(_ key: ExactString, _ encoded: [UInt8]) {
    keys.append(key)
    bytes += encoded
    ends.append(bytes.count)
  }

  /// Puts the entry's bytes in their place; without any, there is no such key.
  fileprivate mutating func set(_ key: ExactString, to encoded: [UInt8]) {
    let index = keys.partitionIndex { $0 < key }
    let start = index == 0 ? 0 : ends[index - 1]
    let isThere = index < keys.count && keys[index] == key
    let end = isThere ? ends[index] : start
    if isThere {
      keys.remove(at: index)
      ends.remove(at: index)
    }
    bytes.replaceSubrange(start..<end, with: encoded)
    let growth = encoded.count - (end - start)
    for later in index..<ends.count { ends[later] += growth }
    guard !encoded.isEmpty else { return }
    keys.insert(key, at: index)
    ends.insert(start + encoded.count, at: index)
  }

  /// Keeps the first half of the entries, and returns the others.
  fileprivate mutating func splitInHalf() -> Self {
    let middle = keys.count / 2
    let start = ends[middle - 1]
    let rest = Self(
      keys: Array(keys[middle...]), ends: ends[middle...].map { $0 - start }, bytes: Array(bytes[start...]))
    keys.removeSubrange(middle...)
    ends.removeSubrange(middle...)
    bytes.removeSubrange(start...)
    return rest
  }
}

extension Array {
  /// How many elements at the beginning are so; all others are not.
  fileprivate func partitionIndex(where isBefore: (Element) -> Bool) -> Int {
    var (low, high) = (startIndex, endIndex)
    while low < high {
      let middle = low + (high - low) / 2
      if isBefore(self[middle]) { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
