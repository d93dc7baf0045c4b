import Foundation

/// Property lists as XML, for tests that write suites past Keyhole.
package enum PropertyListText {
  /// The document around an element.
  package static func xml(_ body: String) -> String {
    """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0">
    \(body)
    </plist>

    """
  }

  /// The value that Foundation reads from a property list's text.
  package static func value(_ text: String) throws -> Any {
    // SAFETY: the format is not asked for, so no pointer is passed.
    unsafe try PropertyListSerialization.propertyList(from: Data(text.utf8), format: nil)
  }
}
