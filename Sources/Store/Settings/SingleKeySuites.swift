public import Model

/// Suites of which one key can be read and changed without reading the others.
public protocol SingleKeySuites: Sendable {
  /// The same suites, for a caller that uses one key of one suite.
  ///
  /// `read` and `update` of `suite` may leave other keys out of the contents, and the time of `key` may be that of the stored
  /// form where no commit of it is known. Other keys keep their values and times. A change of another key by the body of an
  /// `update` may be made on the whole suite, in a second run of the body. All other calls, and those of other suites, are
  /// the same.
  ///
  /// A stored form that is damaged elsewhere is reported as by the whole suites, where the engine has to look at it.
  func only(_ key: ExactString, of suite: ExactString) -> any SuiteEngine
}
