import Dispatch
package import Model
import Store
import Suites

/// Does the steps in a folder of suites, and reads the results.
package struct SuiteWork {
  private let engine: PropertyListFolder

  /// `root` has the folders `config` and `state`.
  package init(root: String) {
    engine = PropertyListFolder(folder: root + "/config", stateFolder: root + "/state/keyhole")
  }

  /// Every suite gets a journal, which is folded and removed while the steps go on.
  package init(journalsIn root: String) {
    engine = PropertyListFolder(
      folder: root + "/config", stateFolder: root + "/state/keyhole", journalsFrom: 0,
      foldingAfter: .milliseconds(3), removingAfter: .milliseconds(3))
  }

  package func perform(_ step: SuiteStep) throws(StoreError) {
    switch step {
    case .create(let name): _ = try engine.create(ExactString(name))
    case .set(let name, let changes):
      _ = try engine.update(ExactString(name), known: nil) { contents in
        for (key, value) in changes {
          contents.settings[ExactString(key)] = value.map { Setting(.string(ExactString($0))) }
        }
      }
    case .remove(let name): try engine.remove(ExactString(name))
    case .rename(let name, let other): try engine.rename(ExactString(name), to: ExactString(other))
    case .synchronize(let name): try engine.synchronize(ExactString(name))
    }
  }

  /// All suites; a damaged one throws.
  package func contents() throws(StoreError) -> [String: SuiteState] {
    var contents: [String: SuiteState] = [:]
    for suite in try engine.suites().keys {
      guard let read = try engine.read(suite) else { continue }
      contents[suite.string] = read.settings.reduce(into: [:]) { state, setting in
        if case .string(let text) = setting.value.value { state[setting.key.string] = text.string }
      }
    }
    return contents
  }

  /// The problems that the engine reports.
  package func problems() -> [String] {
    engine.problems().map { "\($0.subject): \($0.reason)" }
  }
}
