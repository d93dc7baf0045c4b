import Control
import Formats
import KeychainSelection
import Model
import Platform
import SecretMemory

/// One change of a tool's configuration that can be taken back exactly.
struct ConfigurationStep: Equatable {
  enum Change: Equatable {
    /// This text stands at the end of a file, or by now elsewhere in it.
    case append(String)
    /// This text stands behind the first line that is exactly the other one.
    case insert(String, after: String)
    /// This text stands in the place of the first line that was exactly the other one.
    case replace(String, line: String)
    /// The whole file is this text.
    case file(String)
    /// A symbolic link to this path.
    case link(String)
    /// A member of the object of JSON that the file is, with a string as its value.
    case member(String, value: String)
  }

  /// The result of taking back a change.
  enum Outcome: Equatable {
    case done
    /// It was not there any more, or another value has its place.
    case missing
    /// A part of it is there: nothing was done.
    case changed
  }

  let path: String
  let change: Change
  /// Whether the file was made for this.
  var isNewFile = false
  /// How many of the folders above the file were made for this.
  var newFolders = 0

  /// For people, before it is done.
  var plan: String {
    switch change {
    case .append(let text): "\(path): \(isNewFile ? "make it with" : "append")\n\(Self.indented(text))"
    case .insert(let text, let line): "\(path): insert behind `\(line)`\n\(Self.indented(text))"
    case .replace(let text, let line): "\(path): in the place of `\(line)`\n\(Self.indented(text))"
    case .file(let text): "\(path): make it with\n\(Self.indented(text))"
    case .link(let target): "\(path): make it a link to \(target)\n"
    case .member(let name, let value):
      "\(path): \(isNewFile ? "make it with" : "add")\n  \(name.quotedAsJSON): \(value.quotedAsJSON)\n"
    }
  }

  private static func indented(_ text: String) -> String {
    text.split(separator: "\n").map { "  \($0)\n" }.joined()
  }
}

// MARK: Doing and taking back

extension ConfigurationStep {
  /// - Throws: `Failure` where the file can't be written, or something else has the name.
  func apply() throws {
    switch change {
    case .append(let text):
      let present = try ConfigurationFile.read(path) ?? []
      try ConfigurationFile.write(present + Array(text.utf8), to: path)
    case .insert(let text, let line):
      let present = try ConfigurationFile.read(path) ?? []
      guard let place = Self.range(of: line, in: present) else {
        throw Failure(path, "it has no line `\(line)`")
      }
      let (head, rest) = (present.prefix(place.upperBound), present.dropFirst(place.upperBound))
      try ConfigurationFile.write(head + Array(text.utf8) + rest, to: path)
    case .replace(let text, let line):
      let present = try ConfigurationFile.read(path) ?? []
      guard let place = Self.range(of: line, in: present) else {
        throw Failure(path, "it has no line `\(line)`")
      }
      let (head, rest) = (present.prefix(place.lowerBound), present.dropFirst(place.upperBound))
      try ConfigurationFile.write(head + Array(text.utf8) + rest, to: path)
    case .file(let text):
      guard try ConfigurationFile.read(path) == nil else {
        throw Failure(path, "there is such a file already")
      }
      try ConfigurationFile.write(Array(text.utf8), to: path)
    case .link(let target):
      UserFolders.make(Files.folder(of: path))
      do throws(Errno) { try Files.makeLink(path, to: target) } catch {
        throw Failure(path, "the link can't be made: \(error)")
      }
    case .member(let name, let value):
      let present = try ConfigurationFile.read(path) ?? Array("{}\n".utf8)
      try ConfigurationFile.write(JSONMember(name).added(value, to: present, path), to: path)
    }
  }

  /// The bytes of a line with its line feed; blanks behind its text count as none.
  private static func range(of line: String, in bytes: [UInt8]) -> Range<Int>? {
    var start = 0
    while let feed = bytes[start...].firstIndex(of: 0x0A) {
      let found = bytes[start..<feed].reversed().drop { $0 == 0x20 || $0 == 0x0D }.reversed()
      if found.elementsEqual(line.utf8) { return start..<(feed + 1) }
      start = feed + 1
    }
    return nil
  }

  /// `isDry`: nothing is changed, and the outcome is what it would be. It is `done` where the change is in place.
  ///
  /// - Throws: `Failure` where the file can't be read or written.
  func revert(isDry: Bool = false) throws -> Outcome {
    if case .link(let target) = change { return try revertLink(target, isDry) }
    guard let present = try ConfigurationFile.read(path) else { return .missing }
    if let user = kubernetesUser, !isUnchanged(in: present) {
      let (outcome, left) = user.removed(from: present)
      if outcome == .done, !isDry { try ConfigurationFile.write(left, to: path) }
      return outcome
    }
    let left: [UInt8]
    switch change {
    case .append(let text):
      guard let range = Self.lines(text, in: present) else {
        return Self.hasPart(of: text, present) ? .changed : .missing
      }
      let rest = present.dropFirst(range.upperBound)
      left = Array(present.prefix(range.lowerBound)) + Self.kept(of: text, before: rest) + Array(rest)
    case .insert(let text, _), .replace(let text, _):
      guard let range = Self.lines(text, in: present) else {
        return Self.hasPart(of: text, present) ? .changed : .missing
      }
      var former: [UInt8] = []
      if case .replace(_, let line) = change { former = Array((line + "\n").utf8) }
      left = Array(present.prefix(range.lowerBound)) + former + Array(present.dropFirst(range.upperBound))
    case .member(let name, let value):
      switch try JSONMember(name).removed(value, from: present, path) {
      case .some(let rest): left = rest
      case nil: return .missing
      }
      if isNewFile, left.filter({ ![0x20, 0x09, 0x0A].contains($0) }) == Array("{}".utf8) {
        return isDry ? .done : try remove()
      }
    case .file(let text):
      guard present == Array(text.utf8) else { return .changed }
      return isDry ? .done : try remove()
    case .link: return .missing
    }
    guard !isDry else { return .done }
    if isNewFile, left.isEmpty { return try remove() }
    try ConfigurationFile.write(left, to: path)
    return .done
  }

  /// The range of a text that begins a line of a file: what stands behind a `#` is none of it.
  private static func lines(_ text: String, in file: [UInt8]) -> Range<Int>? {
    file.ranges(of: Array(text.utf8)).first { range in
      range.isEmpty || file[range.lowerBound] == 0x0A || range.lowerBound == 0
        || file[range.lowerBound - 1] == 0x0A
    }
  }

  /// The user that a kubeconfig has got; nil: the change is of another file.
  private var kubernetesUser: KubernetesUser? {
    switch change {
    case .append(let text), .insert(let text, _), .file(let text): KubernetesUser(in: text)
    case .replace(let text, let line): KubernetesUser(in: text, noUsers: line)
    case .link, .member: nil
    }
  }

  /// Whether a kubeconfig is still as it was written: kubectl has its entries, which stand anywhere, in another order.
  private func isUnchanged(in file: [UInt8]) -> Bool {
    switch change {
    case .append(let text): file.suffix(text.utf8.count).elementsEqual(text.utf8)
    case .file(let text): file.elementsEqual(text.utf8)
    case .insert, .replace, .link, .member: false
    }
  }

  /// The part of an appended text that belongs to lines which were added behind it by now: the end of the line before, and the
  /// header of the section that they are in.
  private static func kept(of text: String, before rest: ArraySlice<UInt8>) -> [UInt8] {
    guard !rest.isEmpty else { return [] }
    let lines = text.utf8.drop { $0 == 0x0A }
    var kept = Array(text.utf8.prefix { $0 == 0x0A })
    let starts = rest.split(separator: 0x0A).map { $0.first { ![0x20, 0x09, 0x0D].contains($0) } }
    // The next line that is neither blank nor a comment.
    let next = starts.lazy.compactMap(\.self).first { $0 != UInt8(ascii: "#") && $0 != UInt8(ascii: ";") }
    if lines.first == UInt8(ascii: "["), let next, next != UInt8(ascii: "["),
      let end = lines.firstIndex(of: 0x0A)
    {
      kept += lines[...end]
    }
    return kept
  }

  /// Whether a file has a line that begins as one of the text's that names Keyhole, or that names it under the same key.
  private static func hasPart(of text: String, _ file: [UInt8]) -> Bool {
    let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
    let name = Array("keyhole".utf8)
    let parts = text.utf8.split(separator: 0x0A).map { $0.drop(while: isBlank) }
      .filter { !Array($0).ranges(of: name).isEmpty }
    return file.split(separator: 0x0A).map { $0.drop(while: isBlank) }.contains { line in
      parts.contains { part in
        if line.starts(with: part) { return true }
        let key = part.prefix { !isBlank($0) && $0 != UInt8(ascii: "=") }
        return line.starts(with: key) && !line.dropFirst(key.count).ranges(of: name).isEmpty
      }
    }
  }

  /// Removes the file, and the folders that were made for it and are empty then. - Throws: `Failure`; the file is still there.
  func remove() throws -> Outcome {
    do throws(Errno) { _ = try Files.remove(path) } catch {
      throw Failure(path, "it can't be removed: \(error)")
    }
    // A folder with another file in it stays.
    for folder in Self.folders(above: path).prefix(newFolders) {
      do { try Files.removeFolder(folder) } catch { break }
    }
    return .done
  }

  /// From the folder of the file up.
  private static func folders(above path: String) -> UnfoldFirstSequence<String> {
    sequence(first: Files.folder(of: path)) { $0.count > 1 ? Files.folder(of: $0) : nil }
  }

  /// The steps with the folders that each of them is the first to make.
  static func countingFolders(_ steps: [ConfigurationStep]) -> [ConfigurationStep] {
    var made: Set<String> = []
    return steps.map { step in
      let missing = folders(above: step.path).prefix { !Files.hasName($0) && !made.contains($0) }
      made.formUnion(missing)
      var step = step
      step.newFolders = Array(missing).count
      return step
    }
  }

  private func revertLink(_ target: String, _ isDry: Bool) throws -> Outcome {
    guard Files.hasName(path) else { return .missing }
    guard (try? Files.target(ofLink: path)) == target else { return .changed }
    return isDry ? .done : try remove()
  }
}

/// A text file of the user's, replaced as a whole.
enum ConfigurationFile {
  private static let limit = 4 << 20

  /// nil: there is none.
  static func read(_ path: String) throws -> [UInt8]? {
    do throws(Errno) {
      return try Descriptor(path, .reading).readToEnd(limit: limit)
    } catch {
      guard error == .ENOENT else { throw Failure(path, "it can't be read: \(error)") }
      // The file of an unmounted view is there again with the next mount.
      guard !Files.hasName(path) else { throw leadsNowhere(path) }
      return nil
    }
  }

  private static func leadsNowhere(_ path: String) -> Failure {
    Failure(
      path,
      "it is a symbolic link that leads nowhere; `keyhole mount`, where it leads into the mount, or make the file that it leads to"
    )
  }

  /// Writes beside the file and renames, with the permissions that it had. A symbolic link stays one: the file that it leads to
  /// is replaced.
  static func write(_ bytes: [UInt8], to path: String) throws {
    guard !Files.hasName(path) || Files.exists(path) else {
      throw leadsNowhere(path)
    }
    let place = (try? Files.realPath(path)) ?? path
    guard !isInMount(place) else { return try writeThrough(bytes, place, path) }
    let permissions = (try? Files.status(place))?.permissions ?? 0o600
    UserFolders.make(Files.folder(of: place))
    let new = "\(place).keyhole-\(CurrentProcess.number)"
    do throws(Errno) {
      let file = try Descriptor(new, [.writing, .create, .exclusive])
      try file.write(bytes)
      try file.setPermissions(permissions & 0o7777)
      try file.synchronize()
      try Files.rename(new, to: place)
      try Files.synchronizeFolder(Files.folder(of: place))
    } catch {
      _ = try? Files.remove(new)
      throw Failure(path, "it can't be written: \(error)")
    }
  }
}

extension ConfigurationFile {
  /// Whether the file is a view or an item: `keyhole adopt` has put a link in its place.
  private static func isInMount(_ place: String) -> Bool {
    guard let places = try? StoragePaths.current() else { return false }
    return MountRegistration.all(in: places.runtime).contains { place.hasPrefix($0.path + "/") }
  }

  /// A mount takes what was written as a whole, and makes no other file beside it.
  private static func writeThrough(_ bytes: [UInt8], _ place: String, _ path: String) throws {
    do throws(Errno) {
      let file = try Descriptor(place, [.writing, .truncate])
      try file.write(bytes)
      try file.close()
    } catch {
      throw Failure(
        path, "it is a link into the mount, and can't be written: \(error); `keyhole doctor` says why")
    }
  }
}

/// A member of an object of JSON as text, so that all other bytes stay.
struct JSONMember {
  private let name: String

  init(_ name: String) { self.name = name }

  /// The range of the member's value in the object; nil: it has no such member.
  private func value(in bytes: [UInt8], _ path: String) throws -> (range: Range<Int>, text: String?)? {
    let source = ByteSource(try .init(copying: bytes.span))
    return try reading(path) { () throws(FormatError) in
      var found: (range: Range<Int>, text: String?)?
      var scanner = JSONScanner(source)
      try scanner.members { (member, scanner) throws(FormatError) in
        _ = try scanner.next()
        let start = scanner.position
        if member == name {
          let text = try scanner.optionalString()?.text()
          found = (start..<scanner.position, text)
        } else {
          _ = try scanner.value()
        }
      }
      try scanner.end()
      return found
    }
  }

  /// The value as a string; nil: there is no such member, or its value is none.
  func text(in bytes: [UInt8], _ path: String) throws -> String? { try value(in: bytes, path)?.text }

  /// The object with the member as its first one.
  func added(_ value: String, to bytes: [UInt8], _ path: String) throws -> [UInt8] {
    guard try self.value(in: bytes, path) == nil, let brace = bytes.firstIndex(of: UInt8(ascii: "{")) else {
      throw Failure(path, "it has `\(name)` already")
    }
    let rest = bytes.dropFirst(brace + 1)
    let isEmpty = rest.first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) } == UInt8(ascii: "}")
    return Array(bytes.prefix(brace + 1)) + text(value, isOnly: isEmpty) + Array(rest)
  }

  /// The text of the member, which comes behind the object's brace.
  private func text(_ value: String, isOnly: Bool) -> [UInt8] {
    Array(("\n\t\(name.quotedAsJSON): \(value.quotedAsJSON)" + (isOnly ? "\n" : ",")).utf8)
  }

  /// The object without the member; nil: it has another value by now, or is not there.
  func removed(_ value: String, from bytes: [UInt8], _ path: String) throws -> [UInt8]? {
    guard let found = try self.value(in: bytes, path), found.text == value else { return nil }
    if let brace = bytes.firstIndex(of: UInt8(ascii: "{")) {
      // As it was added.
      for added in [text(value, isOnly: true), text(value, isOnly: false)]
      where bytes[(brace + 1)...].starts(with: added) {
        return Array(bytes.prefix(brace + 1)) + Array(bytes.dropFirst(brace + 1 + added.count))
      }
    }
    let quoted = Array(name.quotedAsJSON.utf8)
    var start = found.range.lowerBound
    while start > 0, !bytes[start...].starts(with: quoted) { start -= 1 }
    var end = found.range.upperBound
    let isBlank: (UInt8) -> Bool = { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
    // The blanks before it, and the comma behind it or, of the last member, before it.
    while start > 0, isBlank(bytes[start - 1]) { start -= 1 }
    if let next = bytes[end...].firstIndex(where: { !isBlank($0) }), bytes[next] == UInt8(ascii: ",") {
      end = next + 1
    } else if start > 0, bytes[start - 1] == UInt8(ascii: ",") {
      start -= 1
    }
    return Array(bytes.prefix(start)) + Array(bytes.dropFirst(end))
  }
}
