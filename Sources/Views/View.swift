public import Model
import Platform
public import Store
public import ViewFormats

/// A file that is made of items and settings, as its sealed document describes it.
public struct View: Sendable {
  /// The document that holds its template.
  public let document: SealedDocument
  /// The name of its file in `views`.
  public let name: ExactString
  /// The grammar of its file.
  public let format: ViewFormat
  /// The reader of an environment file; other formats ignore it.
  public let dialect: EnvDialect
  /// The folder of the tree in which new entries become items: `keychain/generic/SERVICE`.
  public let newPlace: String
  /// The paths in the tree that it refers to, each once.
  public let references: [String]
  /// The symbolic links to it that `keyhole view --link` has made: absolute paths.
  public let links: [String]

  /// The beginning of the names of the documents that are views.
  static let prefix = "views/"

  /// nil: it is none, or of a format that this version does not know.
  init?(_ document: SealedDocument) {
    guard document.name.string.hasPrefix(Self.prefix),
      let format = document.text(Property.format).flatMap(ViewFormat.init),
      let dialect = EnvDialect(rawValue: document.text(Property.dialect) ?? "portable")
    else { return nil }
    (self.document, self.format, self.dialect) = (document, format, dialect)
    name = ExactString(String(document.name.string.dropFirst(Self.prefix.count)))
    newPlace = document.text(Property.newPlace) ?? Self.defaultPlace(of: name)
    references = Self.lines(document.text(Property.references))
    links = Self.lines(document.text(Property.links))
  }

  /// Whether it is made from a text with references, and so can only be read.
  public var isTemplate: Bool { !format.isWritable }

  /// The folder of new entries where none was chosen.
  public static func defaultPlace(of name: ExactString) -> String { "keychain/generic/" + name.string }

  static func lines(_ text: String?) -> [String] {
    (text ?? "").unicodeScalars.split(separator: "\n").map { String($0) }
  }

  /// The length that was computed last, and of what; nil: none was.
  var sealedLength: (length: Int, basis: [UInt8])? {
    guard let basis = document.properties[Property.basis],
      let length = document.text(Property.length).flatMap({ Int($0) })
    else { return nil }
    return (length, basis)
  }
}

/// The properties of a view's document.
enum Property {
  static let format: ExactString = "format"
  static let dialect: ExactString = "dialect"
  static let newPlace: ExactString = "new"
  static let links = SealedDocument.links
  /// Renames of settings that are under way: the old path, a tab and the new one, a line each.
  static let moving: ExactString = "moving"
  /// The paths that the text refers to, a line each.
  static let references: ExactString = "references"
  /// The length of the file in bytes.
  static let length = ExactString(SealedDocument.derived + "length")
  /// The digest of the state of the document and of all that it refers to, of which the length is.
  static let basis = ExactString(SealedDocument.derived + "basis")
}

/// The source of a value in a view.
public enum ViewSource: Hashable, Sendable {
  case item(ItemIdentity)
  case setting(suite: ExactString, key: ExactString)
}

/// The paths of the tree, which is above this module.
public protocol ViewPaths: Sendable {
  /// The item or the setting at a path.
  ///
  /// - Throws: `invalidValue` for the path of anything else, and for a name that is shortened.
  func source(at path: String) throws(StoreError) -> ViewSource

  /// The path of an item or a setting, as templates refer to it.
  func path(of source: ViewSource) -> String

  /// Checks the name of a view. - Throws: `invalidName`, `nameTooLong`.
  func checkName(_ name: String) throws(StoreError)
}

extension StoreError {
  /// The error of a caller of the tree. `failure`: of the store, where that was the reason.
  init(_ error: ViewError, after failure: StoreError? = nil) {
    if let failure {
      self = failure
      return
    }
    self =
      switch error.errno {
      case .EINVAL: .invalidValue(reason: error.message)
      case .EILSEQ: .notRepresentable(reason: error.message)
      case .ELOOP: .loop(reason: error.message)
      case .EFBIG: .tooLarge(limit: ViewLimits.bytes)
      case .EROFS: .readOnly(reason: error.message)
      case .ENOMEM: .outOfMemory
      case .EIO: .damaged(what: "the view")
      default: .system(error.errno, operation: error.message)
      }
  }
}
