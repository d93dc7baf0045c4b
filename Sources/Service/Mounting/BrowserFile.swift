import Platform
import Store

/// The list of the machine's browsers of files and indexers.
package enum BrowserFile {
  /// The administrator's list, which takes the place of the usual one: a path in each line.
  package static let path = "/etc/keyhole/browsers"

  /// The programs that cause no question.
  static var list: BrowserList {
    guard let text = try? Files.read(path, limit: 1 << 16) else { return .usual }
    return BrowserList(reading: String(decoding: text, as: UTF8.self))
  }
}
