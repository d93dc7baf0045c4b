import Model
import Platform

/// Keys of a suite's file, found without decoding the others.
struct FoundKeys {
  /// The values of those that are there.
  private(set) var values: [ExactString: SettingValue] = [:]
  /// The number of keys in the file.
  let count: Int
  /// The file as text, and where in it each key is, or would be; nil: another version can't be made of it.
  private let text: (bytes: [UInt8], places: [ExactString: Range<Int>])?

  /// nil: the file has to be read whole, perhaps because it is damaged.
  init?(of keys: [ExactString], in bytes: [UInt8]) {
    guard !bytes.starts(with: BinaryReader.magic) else {
      guard keys.count == 1, var reader = try? BinaryReader(bytes), let found = try? reader.find(keys[0])
      else { return nil }
      values[keys[0]] = found.value
      (count, text) = (found.count, nil)
      return
    }
    // Zeros are what a power cut leaves in place of what it took.
    guard !bytes.hasZeros, XMLText.isPlain(bytes), (try? XMLText.utf8(bytes)) != nil else { return nil }
    var search = KeySearch(keys)
    var reader = XMLReader(bytes)
    guard (try? reader.find(&search)) != nil else { return nil }
    var places: [ExactString: Range<Int>] = [:]
    for (index, key) in keys.enumerated() {
      (places[key], values[key]) = (search.places[index], search.values[index])
    }
    (count, text) = (search.count, (bytes, places))
  }
}

// The next version of the file, in which everything else stays as it is.
extension FoundKeys {
  private struct Edit {
    let key: ExactString
    var place: Range<Int>
    var bytes: ArraySlice<UInt8>
  }

  /// The file with other values of the keys, all of which were looked for; nil for a value: the key goes.
  ///
  /// Returns nil where XML can't say it.
  func document(with changes: [ExactString: SettingValue?]) -> [UInt8]? {
    guard let text else { return nil }
    var edits: [Edit] = []
    for (key, value) in changes {
      guard let place = text.places[key] else { return nil }
      if value == nil, place.isEmpty { continue }
      guard let edit = Self.edit(of: key, to: value, at: place, in: text.bytes) else { return nil }
      edits.append(edit)
    }
    edits.sort { ($0.place.lowerBound, $0.key) < ($1.place.lowerBound, $1.key) }
    var document: [UInt8] = []
    document.reserveCapacity(edits.reduce(text.bytes.count) { $0 + $1.bytes.count })
    var position = 0
    for edit in edits {
      guard edit.place.lowerBound >= position else { return nil }
      document += text.bytes[position..<edit.place.lowerBound]
      document += edit.bytes
      position = edit.place.upperBound
    }
    document += text.bytes[position...]
    return document
  }

  /// nil: XML can't say it.
  private static func edit(
    of key: ExactString, to value: SettingValue?, at place: Range<Int>, in bytes: [UInt8]
  ) -> Edit? {
    guard let value else { return Edit(key: key, place: line(at: place, in: bytes), bytes: []) }
    var writer = XMLWriter()
    writer.entry(key, value, depth: 1)
    guard !writer.isUnwritable else { return nil }
    // Without the tab at the beginning and the line end, which are there.
    let entry = writer.bytes.dropFirst().dropLast()
    guard place.isEmpty else { return Edit(key: key, place: place, bytes: entry) }
    let isAtEnd = bytes[place.lowerBound + 1] == UInt8(ascii: "/")
    return Edit(key: key, place: place, bytes: isAtEnd ? writer.bytes[...] : entry + [0x0A, 0x09])
  }

  /// The place of an entry with its line end, and the tab before it or before the next entry.
  private static func line(at place: Range<Int>, in bytes: [UInt8]) -> Range<Int> {
    guard bytes[place.upperBound] == 0x0A else { return place }
    let (end, next) = (place.upperBound &+ 1, place.upperBound &+ 2)
    if bytes[end] == 0x09 { return place.lowerBound..<next }
    return bytes[place.lowerBound - 1] == 0x09 ? place.lowerBound - 1..<end : place
  }
}
