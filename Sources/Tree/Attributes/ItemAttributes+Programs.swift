internal import Model

extension ProgramRules {
  /// The rules as they are kept, which is as they were written.
  ///
  /// - Throws: `invalidValue` where a line is not a word and an absolute path, or `*` is not in the last one.
  static func checked(_ value: [UInt8]) throws(StoreError) -> ExactString {
    guard let text = ExactString(utf8: value), ProgramRules(text) != nil else {
      throw .invalidValue(reason: "not lines of allow PATH, ask PATH or deny PATH, with * in the last only")
    }
    return text
  }
}
