import Model
import Store
import Synchronization

/// The texts of the last commits, so that the next ones need not encode them again. They may be lost at any moment.
final class EncodedSuiteCache: Sendable {
  private struct Kept {
    let stamp: SuiteStamp
    let text: EncodedSuite
  }

  /// A suite of many keys is far below; one with large values is rather encoded than kept.
  private static let largest = 4 << 20
  private static let mostSuites = 16

  private let kept = Mutex<[ExactString: Kept]>([:])

  /// The text of the file that has the stamp. It is not here any more then, so that changing it copies nothing.
  func take(_ suite: ExactString, _ stamp: SuiteStamp) -> EncodedSuite? {
    kept.withLock { kept in
      guard let last = kept.removeValue(forKey: suite), last.stamp == stamp else { return nil }
      return last.text
    }
  }

  func keep(_ text: EncodedSuite, of suite: ExactString, _ stamp: SuiteStamp) {
    guard text.byteCount <= Self.largest else { return }
    kept.withLock { kept in
      if kept.count >= Self.mostSuites { kept = [:] }
      kept[suite] = Kept(stamp: stamp, text: text)
    }
  }
}
