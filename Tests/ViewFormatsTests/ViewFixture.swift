import Platform
import SecretMemory

@testable import ViewFormats

extension SecretBytes {
  static func of(_ bytes: [UInt8]) -> SecretBytes {
    do { return try SecretBytes(copying: bytes.span) } catch { preconditionFailure("no locked memory") }
  }
}

/// The text of a test in place of an item's path: `keychain/generic/test/NUMBER`.
enum Reference {
  static func path(_ number: Int) -> String { "keychain/generic/test/\(number)" }

  static func number(_ path: String) -> Int? { path.split(separator: "/").last.flatMap { Int($0) } }
}

/// Values by the number of their reference.
struct Values {
  var values: [[UInt8]]

  var lender: ViewTemplate.Lender {
    { [values] (slot, body) throws(ViewError) in
      guard let number = Reference.number(slot.reference), values.indices.contains(number) else {
        throw ViewError(.ENOENT, entry: slot.name, "there is no such item")
      }
      let value = values[number]
      try body(value.span)
    }
  }
}

extension ViewFormat {
  static let writable = allCases.filter(\.isWritable)

  /// A name of this format for each number.
  func name(_ number: Int) -> [String] {
    switch self {
    case .env, .template: ["K\(number)"]
    case .json: ["a", "k\(number)"]
    case .ini: ["s\(number / 10)", "k\(number)"]
    case .netrc: ["h\(number)", "u", "password"]
    case .npmrc: ["//h\(number)/:_authToken"]
    case .pgpass: ["h\(number)", "5432", "d:b", "u\\"]
    case .dockerConfig: ["auths", "h\(number)", "auth", "u"]
    }
  }

  func template(_ numbers: some Sequence<Int>, _ dialect: EnvDialect = .portable) throws -> ViewTemplate {
    try ViewTemplate(self, dialect, entries: numbers.map { (name($0), Reference.path($0)) })
  }
}

/// A format, with its dialect.
struct Grammar: Sendable, CustomStringConvertible {
  let format: ViewFormat
  var dialect = EnvDialect.portable

  static let all =
    EnvDialect.allCases.map { Grammar(format: .env, dialect: $0) }
    + ViewFormat.writable.filter { $0 != .env }.map { Grammar(format: $0) }

  var description: String { format == .env ? "env \(dialect)" : "\(format)" }

  /// The file with those of the values that the format can carry, and their numbers.
  func file(_ values: Values) throws -> (file: [UInt8], numbers: [Int]) {
    let faults = try format.template(values.values.indices, dialect).faults(values.lender)
    let refused = Set(faults.compactMap(\.entry))
    let numbers = values.values.indices.filter { !refused.contains(format.name($0)) }
    return (try format.template(numbers, dialect).render(values.lender).unprotected, numbers)
  }

  func parse(_ text: [UInt8]) throws(ViewError) -> ViewDocument {
    try ViewDocument(parsing: .of(text), as: format, dialect)
  }

  func parse(_ text: String) throws(ViewError) -> ViewDocument { try parse(Array(text.utf8)) }
}

extension ViewDocument {
  /// Names with their values, for a test to compare.
  var texts: [String] {
    entries.map { entry in
      let value = (try? value(of: entry).unprotected) ?? []
      return entry.name.joined(separator: " ") + " -> " + String(decoding: value, as: UTF8.self)
    }
  }

  /// Its own values, by the place of the entry.
  var values: Values { Values(values: entries.map { (try? value(of: $0).unprotected) ?? [] }) }

  /// Each entry's reference is its place.
  func numberedTemplate() throws(ViewError) -> ViewTemplate {
    let places = Dictionary(uniqueKeysWithValues: entries.enumerated().map { ($1.name, $0) })
    return try template { Reference.path(places[$0.name] ?? -1) }
  }
}
