/// The collections that programs have made by the Secret Service, and its aliases.
public struct ServiceCollections: Equatable, Sendable {
  /// A collection.
  public struct Entry: Equatable, Sendable {
    /// Its name for people; nil: it has none but that of its path.
    public var label: String?
    /// In seconds since 1970; nil: it is not known.
    public var created: Int64?

    /// A collection with this label.
    public init(label: String?, created: Int64? = nil) { (self.label, self.created) = (label, created) }
  }

  /// By the names in their paths, `login` too where it has another label.
  public var entries: [String: Entry] = [:]
  /// The names of collections by the aliases that differ from the standard; an empty one: the alias names no collection.
  public var aliases: [String: String] = [:]

  /// None.
  public init() {}

  /// Whether there is nothing that an export has to keep.
  public var isEmpty: Bool { entries.isEmpty && aliases.isEmpty }
}

/// `"secretService": {"collections": {NAME: {"label": …, "created": …}}, "aliases": {ALIAS: NAME}}`.
extension ServiceCollections {
  func write(to sink: ByteSink) throws(FormatError) {
    try sink.write("{\"collections\": {")
    var separator = "\n    "
    for (name, entry) in entries.sorted(by: { $0.key < $1.key }) {
      try sink.write(separator + "\"")
      try JSONText.write(name, to: sink)
      try sink.write("\": {")
      if let label = entry.label {
        try sink.write("\"label\": \"")
        try JSONText.write(label, to: sink)
        try sink.write(entry.created == nil ? "\"" : "\", ")
      }
      if let created = entry.created { try sink.write("\"created\": \(created)") }
      try sink.write("}")
      separator = ",\n    "
    }
    try sink.write("}, \"aliases\": {")
    separator = ""
    for (alias, name) in aliases.sorted(by: { $0.key < $1.key }) {
      try sink.write(separator + "\"")
      try JSONText.write(alias, to: sink)
      try sink.write("\": \"")
      try JSONText.write(name, to: sink)
      try sink.write("\"")
      separator = ", "
    }
    try sink.write("}}")
  }

  init(_ scanner: inout JSONScanner) throws(FormatError) {
    try scanner.members { (member, scanner) throws(FormatError) in
      switch member {
      case "collections":
        try scanner.members { (name, scanner) throws(FormatError) in entries[name] = try Entry(&scanner) }
      case "aliases":
        try scanner.members { (alias, scanner) throws(FormatError) in
          aliases[alias] = try scanner.string().text()
        }
      default: throw FormatError("`secretService` has the unknown member `\(member)`")
      }
    }
  }
}

extension ServiceCollections.Entry {
  fileprivate init(_ scanner: inout JSONScanner) throws(FormatError) {
    try scanner.members { (member, scanner) throws(FormatError) in
      switch member {
      case "label": label = try scanner.string().text()
      case "created":
        guard let seconds = scanner.source.text(try scanner.value()).flatMap({ Int64($0) }) else {
          throw scanner.error("`created` is no number")
        }
        created = seconds
      default: throw FormatError("a collection has the unknown member `\(member)`")
      }
    }
  }
}
