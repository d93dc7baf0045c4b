import Formats
import Model
import Store

/// The intended changes of an import, so that the next start of any command or mount can take it back.
///
/// `import.journal` in the state folder is a property list: per suite whether it was there and each key's value before
/// and after, and the paths of the items that are new. It holds no secret. It is written before the first change and
/// removed after the last; a process that uses it holds `import.lock`, which ends with the process.
struct ImportJournal {
  struct Key: Equatable {
    var name: ExactString
    /// nil: the key was not there.
    var before: SettingValue?
    var after: SettingValue
  }

  struct Suite: Equatable {
    var name: ExactString
    var wasThere: Bool
    var keys: [Key]
  }

  var suites: [Suite] = []
  /// Paths of the items that are made.
  var newItems: [String] = []
  /// Paths of the items that are replaced.
  var replacedItems: [String] = []
  /// Where all items change in one transaction: the nanoseconds that the change gives to the times of all of them.
  var mark: UInt32?
  /// When it began, in seconds since 1970.
  var began: Int64

  var isEmpty: Bool { suites.isEmpty && newItems.isEmpty && replacedItems.isEmpty }

  /// One change that is atomic by itself needs no journal.
  var isNeeded: Bool {
    let parts = suites.count + (newItems.isEmpty && replacedItems.isEmpty ? 0 : 1)
    return parts > 1 || mark == nil && newItems.count + replacedItems.count > 1
  }
}

// MARK: As a property list

extension ImportJournal {
  private static let version: Int128 = 1

  var value: SettingValue {
    .dictionary([
      "version": .integer(Self.version), "began": .integer(Int128(began)),
      "mark": .integer(Int128(mark ?? 0)),
      "newItems": .array(newItems.map { .string(ExactString($0)) }),
      "replacedItems": .array(replacedItems.map { .string(ExactString($0)) }),
      "suites": .array(suites.map(Self.value)),
    ])
  }

  private static func value(_ suite: Suite) -> SettingValue {
    let keys = suite.keys.map { key in
      var entry: [ExactString: SettingValue] = ["name": .string(key.name), "after": key.after]
      entry["before"] = key.before
      return SettingValue.dictionary(entry)
    }
    return .dictionary(["name": .string(suite.name), "wasThere": .bool(suite.wasThere), "keys": .array(keys)])
  }

  /// nil: it is none, or of a newer version.
  init?(_ value: SettingValue) {
    guard case .dictionary(let entries) = value, entries["version"] == .integer(Self.version),
      case .integer(let began)? = entries["began"], let moment = Int64(exactly: began),
      case .integer(let mark)? = entries["mark"], let number = UInt32(exactly: mark),
      case .array(let suites)? = entries["suites"]
    else { return nil }
    self.began = moment
    self.mark = number == 0 ? nil : number
    newItems = Self.strings(entries["newItems"])
    replacedItems = Self.strings(entries["replacedItems"])
    for suite in suites {
      guard let suite = Self.suite(suite) else { return nil }
      self.suites.append(suite)
    }
  }

  private static func strings(_ value: SettingValue?) -> [String] {
    guard case .array(let values)? = value else { return [] }
    return values.compactMap { if case .string(let text) = $0 { text.string } else { nil } }
  }

  private static func suite(_ value: SettingValue) -> Suite? {
    guard case .dictionary(let entries) = value, case .string(let name)? = entries["name"],
      case .bool(let wasThere)? = entries["wasThere"], case .array(let values)? = entries["keys"]
    else { return nil }
    var suite = Suite(name: name, wasThere: wasThere, keys: [])
    for value in values {
      guard case .dictionary(let entry) = value, case .string(let name)? = entry["name"],
        let after = entry["after"]
      else { return nil }
      suite.keys.append(Key(name: name, before: entry["before"], after: after))
    }
    return suite
  }
}
