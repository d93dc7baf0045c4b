import Model
public import Store

/// The rules of every `SuiteEngine`, as cases to run on a fresh engine each.
///
///     @Test(arguments: SuiteEngineConformance.cases)
///     func keepsTheProtocol(_ test: SuiteEngineConformance.Case) throws { try test.run(MemorySuites()) }
public enum SuiteEngineConformance {
  /// One behaviour, named as a claim.
  public struct Case: Sendable, CustomStringConvertible {
    public let description: String
    /// Takes an engine without suites. - Throws: `ConformanceFailure`, or what the engine threw.
    public let run: @Sendable (any SuiteEngine) throws -> Void
  }

  public static let cases: [Case] = lifetimes + contents + times + concurrency
}

/// An engine did not do what its protocol says.
public struct ConformanceFailure: Error, CustomStringConvertible {
  public let description: String
}

/// Fails the case unless `condition` holds.
func require(_ condition: Bool, _ claim: String, line: Int = #line) throws {
  guard condition else { throw ConformanceFailure(description: "not so: \(claim) (line \(line))") }
}

/// Fails the case unless `body` throws `error`.
func require(_ error: StoreError, line: Int = #line, _ body: () throws -> Void) throws {
  do {
    try body()
  } catch let thrown as StoreError where thrown.kind == error.kind {
    return
  } catch {
    throw ConformanceFailure(description: "threw \(error) (line \(line))")
  }
  throw ConformanceFailure(description: "did not throw \(error) (line \(line))")
}

extension StoreError {
  /// The case's name: reasons are for people.
  var kind: Substring { "\(self)".prefix { $0 != "(" } }
}

extension SuiteEngine {
  /// Sets and removes keys as a store does, and returns what the suite then holds.
  @discardableResult
  func set(
    _ values: [ExactString: SettingValue], remove: [ExactString] = [], in suite: ExactString,
    known: SuiteContents? = nil
  ) throws -> SuiteContents {
    try update(suite, known: known) { contents throws(StoreError) in
      for (key, value) in values { contents.settings[key] = Setting(value) }
      for key in remove { contents.settings[key] = nil }
    }
  }

  func values(of suite: ExactString) throws -> [ExactString: SettingValue]? {
    try read(suite)?.settings.mapValues(\.value).dictionary
  }
}
