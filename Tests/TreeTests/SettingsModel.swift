import Model
import StoreConformance
import Tree

/// The rules of SPECIFICATION.md for `defaults`, in dictionaries: two suites, keys, scratch, and open files.
///
/// It knows one handle a file.
struct SettingsModel {
  struct Name: Hashable, CustomStringConvertible {
    var suite: String
    var name: String
    var isScratch: Bool { name.hasPrefix(".") || name.hasSuffix("~") }
    var path: String { "defaults/\(suite)/\(name)" }
    var description: String { "\(suite)/\(name)" }
  }

  /// A file: what its name leads to.
  final class File {
    var isRemoved = false
    var isExclusive = false
    var writer: Writer?
  }

  final class Writer {
    let file: File
    var name: Name
    var original: [UInt8]?
    var content: [UInt8]?
    var appended: [UInt8]?
    var isTruncated = false, isChanged = false, isRefused = false, hasFailed = false
    var declared: SettingType?

    init(_ file: File, _ name: Name) { (self.file, self.name) = (file, name) }
  }

  /// The result of an operation for a program: the value of errno(3), by name.
  enum Failure: Error { case missing, exists, invalid, notEmpty }

  let codec = SettingCodec(propertyLists: NoPropertyLists())
  var stored: [String: [String: SettingValue]] = ["s": [:]]
  var scratch: [Name: [UInt8]] = [:]
  var aside: [Name: Name] = [:]
  /// Created and not committed, with the type that was declared.
  var pending: [Name: SettingType?] = [:]
  /// The types of empty keys: data that was emptied stays data, a type that was set waits for the first content;
  /// what was only created empty takes the type of that content.
  var emptyTypes: [Name: SettingType] = [:]
  var files: [Name: File] = [:]
  var writers: [Writer] = []

  func value(_ name: Name) -> SettingValue? { stored[name.suite]?[name.name] }

  func isVisible(_ name: Name) -> Bool {
    if name.isScratch { return scratch[name] != nil }
    if pending[name] != nil { return true }
    return value(name) != nil && aside[name] == nil
  }

  func content(_ name: Name) -> [UInt8] {
    if name.isScratch { return scratch[name] ?? [] }
    guard pending[name] == nil, let value = value(name) else { return [] }
    return (try? codec.content(of: value)) ?? []
  }

  /// The names that `ls` shows of a suite.
  func list(_ suite: String) -> Set<String> {
    let keys = (stored[suite] ?? [:]).keys.map { Name(suite: suite, name: $0) }
    let names = keys + pending.keys + scratch.keys
    return Set(names.filter { $0.suite == suite && isVisible($0) }.map(\.name))
  }

  func read(_ value: [UInt8], as type: SettingType?) throws -> SettingValue {
    guard let type else { return codec.inferred(from: value) }
    do { return try codec.value(of: value, as: type) } catch { throw Failure.invalid }
  }

  func settledType(_ name: Name) -> SettingType? {
    value(name).flatMap { $0 == .data([]) ? emptyTypes[name] : $0.type }
  }

  mutating func store(_ content: [UInt8], at name: Name, as type: SettingType? = nil) throws {
    let declared = pending[name] ?? nil
    let type = type ?? declared ?? settledType(name)
    let value = try read(content, as: type)
    stored[name.suite]?[name.name] = value
    emptyTypes[name] = value == .data([]) && type == .data ? .data : nil
    (pending[name], aside[name]) = (nil, nil)
  }

  /// Forgets a file that was created and not committed, and shows again what it was to replace if its
  /// backup is gone. Returns whether there was one.
  mutating func dropPending(_ name: Name) -> Bool {
    guard pending.removeValue(forKey: name) != nil else { return false }
    if let place = aside[name], scratch[place] == nil { aside[name] = nil }
    return true
  }

  mutating func replaceFile(at name: Name) {
    files[name]?.isRemoved = true
    files[name] = nil
  }
}

// MARK: Files

extension SettingsModel {
  mutating func open(_ name: Name, truncating: Bool, exclusive: Bool) throws -> Writer {
    guard stored[name.suite] != nil else { throw Failure.missing }
    let isNew = !isVisible(name)
    guard isNew || !exclusive else { throw Failure.exists }
    let file = files[name] ?? File()
    files[name] = file
    let writer = Writer(file, name)
    if isNew {
      pending[name] = .some(nil)
      if exclusive { file.isExclusive = true }
    }
    writer.original = content(name)
    writer.isTruncated = truncating || isNew
    file.writer = writer
    writers.append(writer)
    return writer
  }

  /// The content that an ordinary write changes.
  private func own(_ writer: Writer) -> [UInt8] {
    let base = writer.content ?? (writer.isTruncated ? [] : writer.original ?? content(writer.name))
    return base + (writer.appended ?? [])
  }

  func write(_ bytes: [UInt8], at offset: Int?, _ writer: Writer) throws {
    guard !writer.hasFailed else { throw Failure.invalid }
    writer.isChanged = true
    writer.isRefused = false
    if offset == nil, !writer.isTruncated, writer.content == nil {
      writer.appended = (writer.appended ?? []) + bytes
      return
    }
    var content = own(writer)
    let start = offset ?? content.count
    content += [UInt8](repeating: 0, count: max(0, start + bytes.count - content.count))
    content.replaceSubrange(start..<start + bytes.count, with: bytes)
    (writer.content, writer.appended) = (content, nil)
  }

  func truncate(_ count: Int, _ writer: Writer) throws {
    guard !writer.hasFailed else { throw Failure.invalid }
    let content = own(writer)
    let zeros = [UInt8](repeating: 0, count: max(0, count - content.count))
    (writer.content, writer.appended) = (content.prefix(count) + zeros, nil)
    writer.isChanged = true
    writer.isRefused = false
  }

  mutating func flush(_ writer: Writer) throws {
    guard !writer.hasFailed else { throw Failure.invalid }
    if writer.isChanged { try commit(writer) }
  }

  mutating func close(_ writer: Writer) {
    let isWanted = !writer.hasFailed && !writer.isRefused
    if isWanted, writer.isChanged || writer.isTruncated { try? commit(writer) }
    if !writer.file.isRemoved { _ = dropPending(writer.name) }
    writer.file.writer = nil
    writers.removeAll { $0 === writer }
  }

  mutating func commit(_ writer: Writer) throws {
    if !writer.file.isRemoved {
      do {
        let content = writer.appended.map { stored(writer.name) + $0 } ?? own(writer)
        try put(content, at: writer.name, as: writer.declared)
      } catch {
        writer.isRefused = true
        throw error
      }
    }
    if writer.appended != nil {
      (writer.original, writer.content) = (nil, nil)
    } else if writer.content == nil {
      writer.content = own(writer)
    }
    writer.appended = nil
    (writer.isChanged, writer.isTruncated, writer.declared) = (false, false, nil)
  }

  /// Writes to a file that was set aside while it was open go to the scratch file.
  private mutating func put(_ content: [UInt8], at name: Name, as type: SettingType?) throws {
    guard name.isScratch else { return try store(content, at: name, as: type) }
    scratch[name] = content
  }

  private func stored(_ name: Name) -> [UInt8] {
    if name.isScratch { return scratch[name] ?? [] }
    return value(name).flatMap { try? codec.content(of: $0) } ?? []
  }

  /// Whether what the handle would commit now is a value.
  func couldCommit(_ writer: Writer) -> Bool {
    var copy = self
    let content = writer.appended.map { stored(writer.name) + $0 } ?? own(writer)
    return (try? copy.put(content, at: writer.name, as: writer.declared)) != nil
  }
}
