import Foundation
import UserDefault

/// A class with `NSCoding`, as NSColor is one.
final class Color: NSObject, NSCoding, DefaultsValueConvertible {
  private let red: Double

  init(_ red: Double) { self.red = red }
  init?(coder: NSCoder) { red = coder.decodeDouble(forKey: "red") }
  func encode(with coder: NSCoder) { coder.encode(red, forKey: "red") }
  override func isEqual(_ other: Any?) -> Bool { (other as? Color)?.red == red }
}
