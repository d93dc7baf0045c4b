import Model
import Platform
package import ProgramRunning
import SecretMemory
import Store
import Tree
import ViewFormats

/// The values that a program is to get, found in the tree.
package struct ProgramValues {
  /// One that is not a folder.
  fileprivate struct Entry {
    /// A variable without a name: those of a view.
    let place: ProgramValue.Place
    let path: TreePath
  }

  package let session: TreeSession
  /// The paths that were named, folders as such: what is added to one belongs to it.
  private let named: [(ProgramValue.Place, TreePath)]

  /// Looks up the paths; nothing is opened. - Throws: `Failure`, `UsageError`.
  package init(_ values: [ProgramValue]) throws {
    do { try self.init(lookingUp: values) } catch {
      guard LockedMemoryLimit.wasReached, LockedMemoryLimit.bytes < .max else { throw error }
      // Of a keychain that can't be opened no size is known.
      throw ProgramMemory([], masking: false, besides: 0).lackForKeychain
    }
  }

  private init(lookingUp values: [ProgramValue]) throws {
    // The keychain that is unlocked for one short name is open for the next, and for the values.
    var present: TreeSession?
    named = try values.map { value in
      guard !PathLocation.isFull(value.path) else { return (value.place, TreePath(value.path)) }
      let names: OpenedPath.ShortNames = value.place == .variable(nil) ? .folders : .items
      let opened = try value.requiringName { try OpenedPath(value.path, names, in: present) }
      if opened.path.needsKeychain { present = opened.session }
      return (value.place, opened.path)
    }
    let first = named.first { $0.1.needsKeychain } ?? named.first
    session = try present ?? TreeSession(for: first?.1 ?? TreePath("defaults"))
    try requireFreeNumbers()
  }

  init(_ values: [ProgramValue], in session: TreeSession) {
    named = values.map { ($0.place, TreePath($0.path)) }
    self.session = session
  }

  /// Opens all values: questions are asked here. `onValue` gets how many are opened, and of how many. - Throws: `Failure`, `SecretMemoryError`: nothing may be started.
  package func fetch(
    masking isMasking: Bool, _ onValue: (Int, Int) -> Void = { _, _ in }
  ) throws -> ProgramSecrets {
    let entries = try allEntries()
    let used = LockedMemoryLimit.used
    do { return try secrets(of: entries, masking: isMasking, onValue) } catch {
      guard LockedMemoryLimit.wasReached, LockedMemoryLimit.bytes < .max else { throw error }
      throw ProgramMemory(entries.map { size(of: $0.path.ofValue) }, masking: isMasking, besides: used).lack
    }
  }

  /// As stat(2) has it.
  private func size(of path: TreePath) -> Int {
    guard let node = try? session.node(at: path) else { return 0 }
    return Int(clamping: (try? session.tree.status(of: node, for: session.caller).size) ?? 0)
  }

  private func secrets(
    of entries: [Entry], masking isMasking: Bool, _ onValue: (Int, Int) -> Void
  ) throws -> ProgramSecrets {
    var secrets = try ProgramSecrets(masking: isMasking)
    var names = Set(entries.compactMap(\.name))
    var numbers = freeNumbers()[...]
    for (index, entry) in entries.enumerated() {
      onValue(index, entries.count)
      let path = entry.path.ofValue
      guard entry.place != .variable(nil) else {
        try addVariables(of: path, to: &secrets, besides: &names)
        continue
      }
      let value = try session.secret(at: path)
      do {
        switch entry.place {
        case .variable(let name): try add(value, to: &secrets, in: name ?? "", of: path)
        case .descriptor(let number): try secrets.add(value.span, as: number, pathIn: nil)
        case .file(let name):
          guard let number = numbers.popFirst() else {
            throw Failure("--file \(name)", "there are no more descriptors; `ulimit -n` raises the limit")
          }
          try secrets.add(value.span, as: number, pathIn: name)
        }
      } catch let failure as SecretFile.Failure {
        throw Failure(path.string, failure.reason)
      }
    }
    return secrets
  }

  /// The paths that a change is looked for at.
  var watched: [TreePath] { named.map { $0.1.isItem ? $0.1.ofValue : $0.1 } }
}

// MARK: - Names

extension ProgramValues {
  /// Variables that decide which code a program runs. A program that may write one item must not choose that.
  private static let loaderNames: Set<String> = ["PATH", "IFS", "ENV", "BASH_ENV", "PS4", "PROMPT_COMMAND"]

  private func allEntries() throws -> [Entry] {
    let all = try named.flatMap { place, path in
      place == .variable(nil) ? try entries(at: path) : [Entry(place: place, path: path)]
    }
    var names: Set<String> = []
    for entry in all {
      if let name = entry.name { try Self.take(name, of: entry.path, &names) }
    }
    return all
  }

  private static func take(_ name: String, of path: TreePath, _ names: inout Set<String>) throws {
    guard names.insert(name).inserted else {
      throw Failure(path.string, "the variable \(name) has a value already; give one of the two another name")
    }
  }

  /// The items of a service, the keys of a suite, one of them, or a view.
  private func entries(at path: TreePath) throws -> [Entry] {
    let node = try session.node(at: path)
    if path.isView, !node.isDirectory {
      try requireEnvironment(path, node)
      return [Entry(place: .variable(nil), path: path)]
    }
    guard node.isDirectory, !path.isItem else {
      let isFile = path.isSecret && path.parent.isItem
      guard !isFile || path.name == "value" else {
        throw Failure(path.string, "it needs a name: NAME=\(path.string)")
      }
      return [try Entry(place: .variable(Self.name(isFile ? path.parent : path)), path: path)]
    }
    guard path.isOfValues else {
      throw Failure(path.string, "it has more than values in it; name a suite, a service or one value")
    }
    let found = try session.attempt(path) { () throws(StoreError) in try session.tree.list(node) }
    let names = found.map(\.name).sorted { ExactString($0) < ExactString($1) }
    guard !names.isEmpty else { throw Failure(path.string, "there is no value in it", .notFound) }
    return try names.map { name in
      let child = path.appending(name)
      guard !Self.choosesCode(name) else {
        throw Failure(
          child.string,
          "a variable of this name decides which code runs; name it: --env \(name)=\(child.string)")
      }
      return try Entry(place: .variable(Self.name(child)), path: child)
    }
  }

  private static func choosesCode(_ name: String) -> Bool {
    loaderNames.contains(name) || name.hasPrefix("LD_")
  }

  private static func name(_ path: TreePath) throws -> String {
    guard ProgramValue.isVariableName(path.name) else {
      throw Failure(
        path.string,
        "\(path.name) can't be the name of a variable (A-Z, a-z, 0-9 and _); give it one, and name the others too in the place of their folder: "
          + "NAME=\(path.string.quotedForShell)"
      )
    }
    return path.name
  }
}

extension ProgramValues.Entry {
  fileprivate var name: String? {
    switch place {
    case .variable(let name): name
    case .file(let name): name
    case .descriptor: nil
    }
  }
}

extension TreePath {
  /// Whether it is a suite, a service or a server.
  fileprivate var isOfValues: Bool {
    switch components.first {
    case "defaults": components.count == 2
    case "keychain": components.count == 3 && components[1] != "other"
    default: false
    }
  }
}

// MARK: - Values

extension ProgramValues {
  /// The longest variable that execve(2) takes: MAX_ARG_STRLEN of Linux.
  private static let longest = 128 * 1024

  private func add(
    _ value: borrowing SecretBytes, to secrets: inout ProgramSecrets, in name: String, of path: TreePath
  ) throws {
    let bytes = value.span
    // As `$(…)` of a shell takes it off: a setting's file ends with it.
    try addVariable(
      bytes.last == 0x0A ? bytes.extracting(droppingLast: 1) : bytes, to: &secrets, in: name, of: path)
  }

  private func addVariable(
    _ content: Span<UInt8>, to secrets: inout ProgramSecrets, in name: String, of path: TreePath
  ) throws {
    if content.firstOffset(of: 0) != nil {
      throw Failure(
        path.string,
        "the value has a NUL byte, which no variable can hold; give it as a file: --file NAME=PATH")
    }
    if name.utf8.count + content.count + 2 > Self.longest {
      throw Failure(
        path.string,
        "the value is longer than a variable can be (128 KiB); give it as a file: --file NAME=PATH")
    }
    try secrets.add(name, content)
  }
}

// MARK: - Views

extension ProgramValues {
  private func requireEnvironment(_ path: TreePath, _ node: Node) throws {
    let format = try attribute("user.keyhole.format", path, node)
    guard format == ViewFormat.env.rawValue, path.components.first == "views" else {
      throw Failure(
        path.string,
        "its format is \(format), which has no variables; give it as a file: --file NAME=\(path.string)")
    }
  }

  /// The variables that a view of format `env` has, with the values that the reader of its dialect gives them.
  private func addVariables(
    of path: TreePath, to secrets: inout ProgramSecrets, besides names: inout Set<String>
  ) throws {
    let dialect = try attribute("user.keyhole.dialect", path, session.node(at: path))
    let text = try session.secret(at: path)
    let document: ViewDocument
    do throws(ViewError) {
      document = try ViewDocument(parsing: text, as: .env, EnvDialect(rawValue: dialect) ?? .portable)
    } catch {
      throw Failure(path.string, error.message)
    }
    for entry in document.entries {
      let name = entry.name.joined()
      guard ProgramValue.isVariableName(name), !Self.choosesCode(name) else {
        throw Failure(path.string, "\(name): \(Self.refusal(of: name))")
      }
      try Self.take(name, of: path, &names)
      let value: SecretBytes
      do throws(ViewError) { value = try document.value(of: entry) } catch {
        throw Failure(path.string, error.message)
      }
      try addVariable(value.span, to: &secrets, in: name, of: path)
    }
  }

  private static func refusal(of name: String) -> String {
    choosesCode(name)
      ? "a variable of this name decides which code runs; remove it from the view, and name it: --env \(name)=PATH"
      : "this can't be the name of a variable (A-Z, a-z, 0-9 and _)"
  }

  private func attribute(_ name: String, _ path: TreePath, _ node: Node) throws -> String {
    try session.attempt(path) { () throws(StoreError) in
      String(decoding: try session.tree.attribute(name, of: node), as: UTF8.self)
    }
  }
}

extension SecretFile.Failure {
  fileprivate var reason: String {
    switch self {
    case .lockedMemory: StoreError.outOfMemory.message
    case .system(let errno): "it can't be given as a file: \(systemMessage(errno))"
    }
  }
}

// MARK: - Numbers of descriptors

extension ProgramValues {
  /// As a shell's process substitution does: far from the numbers that scripts take.
  private static let firstNumber: Int32 = 63

  private var takenNumbers: [Int32] {
    named.compactMap { if case .descriptor(let number) = $0.0 { number } else { nil } }
  }

  private func requireFreeNumbers() throws {
    let limit = ResourceLimit.descriptors.values.current
    var seen: Set<Int32> = []
    for number in takenNumbers {
      guard UInt64(clamping: number) < limit else {
        throw Failure("--fd \(number)", "descriptors end at \(limit &- 1); `ulimit -n` sets the limit")
      }
      guard !Descriptor.isInherited(number) else {
        throw Failure("--fd \(number)", "this descriptor is in use already; take another number")
      }
      guard seen.insert(number).inserted else { throw Failure("--fd \(number)", "it is given twice") }
    }
  }

  /// For files, in the order in which they are taken.
  private func freeNumbers() -> [Int32] {
    let highest = Int32(clamping: ResourceLimit.descriptors.values.current) &- 1
    let taken = Set(takenNumbers)
    let low = Array((3...Self.firstNumber).reversed())
    let high = Self.firstNumber < highest ? Array((Self.firstNumber &+ 1)...min(highest, 1023)) : []
    return (low + high).filter { $0 <= highest && !taken.contains($0) && !Descriptor.isInherited($0) }
  }
}
