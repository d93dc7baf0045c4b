import Dispatch
import Model
import Platform
import Store
import Synchronization

/// The texts of the last commits, so that the next ones need not encode them again. They may be lost at any moment.
final class EncodedSuiteCache: Sendable {
  /// A text, and the settings that it has.
  struct Kept: Sendable {
    let stamp: SuiteStamp
    var text: EncodedSuite
    let settings: SharedDictionary<Setting>
  }

  /// A larger text is dropped when it was not used for ten seconds, in bytes.
  private static let lasting = 256 << 10
  private static let mostSuites = 16
  private static let mostBytes = 64 << 20

  private let kept = Mutex<[ExactString: Kept]>([:])

  /// The text of the file that has the stamp. It is not here any more then, so that changing it copies nothing.
  func take(_ suite: ExactString, _ stamp: SuiteStamp) -> Kept? {
    kept.withLock { kept in
      guard let last = kept.removeValue(forKey: suite), last.stamp == stamp else { return nil }
      return last
    }
  }

  func keep(_ next: Kept, of suite: ExactString) {
    kept.withLock { kept in
      let bytes = kept.values.reduce(next.text.byteCount) { $0 + $1.text.byteCount }
      if kept.count >= Self.mostSuites || bytes > Self.mostBytes { kept = [:] }
      kept[suite] = next
    }
    guard next.text.byteCount > Self.lasting else { return }
    let stamp = next.stamp
    Background.run(after: .seconds(10)) { [weak self] in self?.drop(suite, stamp) }
  }

  private func drop(_ suite: ExactString, _ stamp: SuiteStamp) {
    kept.withLock { kept in
      if kept[suite]?.stamp == stamp { kept[suite] = nil }
    }
  }
}
