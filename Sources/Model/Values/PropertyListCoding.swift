/// XML property lists as text, for values that JSON can't say.
///
/// `Model` knows no parser; the engine of the suites brings its own.
public protocol PropertyListCoding: Sendable {
  /// The value as an XML property list, ended by a line feed, laid out as Apple's writers do.
  func xml(_ value: SettingValue) throws(StoreError) -> [UInt8]

  /// The value that an XML property list holds, or nil where `text` is none.
  func value(xml text: some Collection<UInt8>) -> SettingValue?
}
