import Model
import Synchronization

/// The suites that were there at the moment from which on changes are published, and were not read yet.
final class Baseline: Sendable {
  /// The meaning of the first contents of a suite.
  enum Meaning {
    /// Those of that moment, or changes are not published yet.
    case known
    /// Another program has changed the suite since it had these contents.
    case changed(since: SuiteStamp)
    /// The suite was not there.
    case new
  }

  /// nil: changes are not published yet.
  private let suites = Mutex<[ExactString: SuiteStamp]?>(nil)

  func begin(_ suites: [ExactString: SuiteStamp]) {
    self.suites.withLock { $0 = suites }
  }

  var unread: [ExactString] { suites.withLock { $0.map { Array($0.keys) } ?? [] } }

  /// The meaning of the contents of a suite that is read for the first time.
  func meaning(of suite: ExactString, _ stamp: SuiteStamp?) -> Meaning {
    suites.withLock { suites in
      guard suites != nil else { return .known }
      guard let then = suites?.removeValue(forKey: suite) else { return .new }
      return then == stamp ? .known : .changed(since: then)
    }
  }

  /// Whether a suite that is not there any more was there.
  func takeRemoved(_ suite: ExactString) -> Bool {
    suites.withLock { $0?.removeValue(forKey: suite) != nil }
  }
}
