package import Model
public import Platform
public import SecretMemory

/// Why a view can't be parsed or rendered. It names an entry or a line, and never holds a value.
public struct ViewError: Error, Hashable, Sendable {
  /// The number for the caller of open(2), close(2) or rename(2).
  ///
  /// - `EINVAL`: the text, a name or the stored form does not parse; a value stands in a comment, a key or a section's name.
  /// - `EILSEQ`: a value that the format can't carry, or text that is not UTF-8 in a format that requires it.
  /// - `ELOOP`: a reference to a view or a template.
  /// - `EFBIG`: more than `ViewLimits` allows.
  /// - `ENOMEM`: no locked memory.
  /// - Any other: what the lender of a value threw.
  public let errno: Errno
  /// The line, counted from 1; nil: it is not about a place in the text.
  public let line: Int?
  /// The name path of the entry; nil: it is not about an entry.
  public let entry: [String]?
  /// The fault, and what to do where something can be done, as a clause.
  public let reason: String

  /// An error of a lender, or of this module.
  public init(_ errno: Errno, line: Int? = nil, entry: [String]? = nil, _ reason: String) {
    self.errno = errno
    self.line = line
    self.entry = entry
    self.reason = reason
  }

  /// An item or a setting that the store does not give.
  package init(_ error: StoreError, entry: [String]? = nil) {
    self.init(error.errno, entry: entry, error.message)
  }

  /// Memory for secrets can't be allocated or locked (RLIMIT_MEMLOCK).
  public init(_ error: SecretMemoryError) {
    self.init(.ENOMEM, "there is not enough locked memory; `ulimit -l` shows the limit")
  }

  /// One line for people: the place, the entry and the reason.
  public var message: String {
    var places: [String] = []
    if let line { places.append("line \(line)") }
    if let entry { places.append(entry.joined(separator: " ")) }
    return (places + [reason]).joined(separator: ": ")
  }
}

/// The most that a view may have. Beyond it is `EFBIG`.
public enum ViewLimits {
  /// The bytes of a view, of the text that is written and of what is rendered.
  public static let bytes = 4 << 20
  /// The entries of a view.
  public static let entries = 20_000
  /// The nesting of arrays and objects in JSON.
  public static let depth = 128
}
