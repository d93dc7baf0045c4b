import Model
import Platform
package import SecretMemory
import Store
import Tree
package import ViewFormats
import Views

/// Makes views of the paths that a person gives, and lists them.
package struct ViewMaker {
  private let session: TreeSession

  /// The words for dialects.
  package static let dialects = EnvDialect.allCases.map(\.rawValue)

  /// The words for formats of views that can be written.
  package static let formats = ViewFormat.allCases.filter(\.isWritable).map(\.rawValue)

  /// - Throws: `Failure` where the keychain can't be opened.
  package init() throws {
    session = try TreeSession(for: TreePath("views"))
  }

  /// Makes a view. `sources`: paths, each with a name before it or without; accounts of a service and keys of a suite give
  /// their names.
  ///
  /// - Throws: `Failure`, with the word that is wrong.
  package func make(
    _ name: String, _ format: ViewFormat, _ dialect: EnvDialect, newPlace: String?, from sources: [String]
  ) throws {
    let path = TreePath("views/" + name)
    let views = try views(path)
    var entries: [(name: [String], reference: String)] = []
    for source in sources { entries += try self.entries(of: source, format) }
    try session.attempt(path) { () throws(StoreError) in
      try views.make(ExactString(name), format, dialect, newPlace: newPlace, entries)
    }
    session.stores.settleKeychain()
  }

  /// Makes a view from a text with references.
  package func make(_ name: String, template: borrowing SecretBytes, _ dialect: EnvDialect) throws {
    let path = TreePath("templates/" + name)
    let views = try views(path)
    let text = SharedText(try SecretBytes(copying: template))
    try session.attempt(path) { () throws(StoreError) in
      try views.setTemplate(ExactString(name), to: text.bytes, dialect: dialect, replacing: false)
    }
    session.stores.settleKeychain()
  }

  /// The file of a view with `{{ PATH }}` in the place of each value.
  ///
  /// - Throws: `Failure` where there is no view of the name, or the keychain is locked.
  package func outline(_ name: String) throws -> SecretBytes {
    let path = TreePath("views/" + name)
    let views = try views(path)
    let text = try session.attempt(path) { () throws(StoreError) in
      SharedText(try views.outline(of: views.existing(ExactString(name))))
    }
    return try SecretBytes(copying: text.bytes)
  }

  /// The items and settings that a view refers to and that are not there.
  package func missingReferences(_ name: String) throws -> [String] {
    let path = TreePath("views/" + name)
    let views = try views(path)
    return try session.attempt(path) { () throws(StoreError) in
      try views.missingReferences(of: views.existing(ExactString(name)))
    }
  }

  /// A view, for a list.
  package struct Listed {
    package let name: String
    package let format: ViewFormat
    /// nil: the format has none.
    package let dialect: EnvDialect?
    /// The number of items and settings that it refers to.
    package let references: Int
    /// The symbolic links that lead to it.
    package let links: [String]
  }

  /// All views, by name.
  package func list() throws -> [Listed] {
    let path = TreePath("views")
    let views = try views(path)
    let all = try session.attempt(path) { () throws(StoreError) in try views.all() }
    return all.sorted { $0.name < $1.name }.map { view in
      Listed(
        name: view.name.string, format: view.format, dialect: view.format == .env ? view.dialect : nil,
        references: view.references.count,
        links: view.links.filter { ViewLink(path: $0).state(of: view.name.string) == .inPlace })
    }
  }

  private func views(_ path: TreePath) throws -> Views {
    try session.attempt(path) { () throws(StoreError) in
      guard let keychain = session.stores.keychain, let views = session.tree.views else {
        throw .unsupported(reason: "no keychain is shown, and views are kept in a vault")
      }
      try keychain.requireDocuments()
      return views
    }
  }
}

/// A text that closures share.
private final class SharedText: Sendable {
  let bytes: SecretBytes

  init(_ bytes: consuming SecretBytes) { self.bytes = bytes }
}

// MARK: - Sources

extension ViewMaker {
  private func entries(
    of source: String, _ format: ViewFormat
  ) throws -> [(name: [String], reference: String)] {
    if let (name, path) = Self.named(source) {
      let path = try self.path(path)
      guard path.isItem || path.isKey else {
        throw Failure(source, "a name stands before the path of one item or one setting")
      }
      return [(Self.name(name, format), path.string)]
    }
    let path = try path(source)
    if path.isItem { return [(try name(ofItemAt: path, format), path.string)] }
    if path.isKey { return [(Self.name(try plainName(path), format), path.string)] }
    return try content(of: path, format)
  }

  /// The parts of NAME=PATH; nil: it is a path alone. Names and paths may have equals signs of their own.
  private static func named(_ source: String) -> (name: String, path: String)? {
    guard !PathLocation.isFull(source) else { return nil }
    for index in source.indices where source[index] == "=" {
      let path = String(source[source.index(after: index)...])
      if PathLocation.isFull(path), !path.isEmpty { return (String(source[..<index]), path) }
    }
    guard !source.hasPrefix("/"), !source.hasPrefix("."), let index = source.firstIndex(of: "=") else {
      return nil
    }
    return (String(source[..<index]), String(source[source.index(after: index)...]))
  }

  /// A short name too: the view reads what it names.
  private func path(_ text: String) throws -> TreePath {
    let path = try OpenedPath(text, .folders, in: session).path
    return path.name == "value" && path.parent.isItem ? path.parent : path
  }

  /// The accounts of a service, or the keys of a suite.
  private func content(
    of path: TreePath, _ format: ViewFormat
  ) throws -> [(name: [String], reference: String)] {
    let entries = try session.entries(at: path)
    guard entries.allSatisfy({ $0.path.isItem || $0.path.isKey }), !entries.isEmpty else {
      throw Failure(path.string, "it is no item, setting, service or suite; give the path of one")
    }
    return try entries.map { entry in
      let name =
        entry.path.isItem
        ? try name(ofItemAt: entry.path, format) : Self.name(try plainName(entry.path), format)
      return (name, entry.path.string)
    }
  }

  private func plainName(_ path: TreePath) throws -> String {
    let node = try session.node(at: path)
    return try session.attempt(path) { () throws(StoreError) in
      String(decoding: try session.tree.attribute("user.keyhole.name", of: node), as: UTF8.self)
    }
  }

  /// In files that name servers, an item is named by its service or server and its account.
  private func name(ofItemAt path: TreePath, _ format: ViewFormat) throws -> [String] {
    let node = try session.node(at: path)
    let item = try session.attempt(path) { () throws(StoreError) in try session.tree.item(of: node) }
    let names: (place: String, account: String)? =
      switch item?.identity {
      case .generic(let service, let account)?: (service.string, account.string)
      case .internet(let identity)?: (identity.server.string, identity.account.string)
      default: nil
      }
    guard let names else { throw Failure(path.string, "this item has no account; write NAME=\(path.string)") }
    switch format {
    case .netrc where names.account.isEmpty: return [names.place, "password"]
    case .netrc: return [names.place, names.account, "password"]
    case .dockerConfig: return ["auths", names.place, "auth", names.account]
    default: return Self.name(names.account, format)
    }
  }

  /// The name path of a name that a person gives (`ViewSlot.name`).
  private static func name(_ text: String, _ format: ViewFormat) -> [String] {
    let parts = { (separator: Character) in
      text.split(separator: separator, omittingEmptySubsequences: false).map(String.init)
    }
    switch format {
    case .env, .npmrc, .json, .template: return [text]
    case .ini:
      let parts = text.split(separator: "/", maxSplits: 1).map(String.init)
      return parts.count == 2 ? parts : ["default", text]
    case .netrc: return parts("/") + ["password"]
    case .pgpass: return parts(":")
    case .dockerConfig:
      let parts = parts("/")
      guard parts.count > 1, let user = parts.last else { return ["auths", text, "auth", ""] }
      return ["auths", parts.dropLast().joined(separator: "/"), "auth", user]
    }
  }
}
