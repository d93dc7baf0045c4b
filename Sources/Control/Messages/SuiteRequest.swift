package import Model
package import Store

/// A request about the suites of a mount that keeps its settings in a cluster, which only the mount's process reaches.
package enum SuiteRequest: Hashable, Sendable {
  /// The names, with their stamps; `suites` is the answer.
  case list
  /// The stamp of one; `stamp` is the answer.
  case stamp(ExactString)
  /// The settings of one; `contents` is the answer.
  case contents(ExactString)
  /// Changes one, if that still has this stamp; `contents` is the answer, and `interrupted` where it has another one.
  case change(ExactString, from: SuiteStamp, [SuiteEdit])
  case create(ExactString)
  case remove(ExactString)
  case rename(ExactString, to: ExactString)
  /// `readOnly` is the answer.
  case readOnlyReason(ExactString)
  /// `problems` is the answer.
  case problems
  /// `room` is the answer.
  case room
  /// The layers that the suites are made of; `layers` is the answer.
  case layers
  /// The layer whose value a key has; `origin` is the answer.
  case origin(ExactString, key: ExactString)
  /// Removes a key of a suite, or all that layers below have, from the layer that is written; `reset` is the answer.
  case reset(ExactString, key: ExactString?)
  /// `isStale` is the answer.
  case isStale
  /// `history` is the answer, or `done`.
  case history(SuiteHistoryRequest)
  /// `changed` is the answer, at once and after each change, until the connection ends.
  case watch
}

/// The answers to `SuiteRequest` that no other request has.
package enum SuiteReply: Hashable, Sendable {
  case list([ListedSuite])
  case stamp(SuiteStamp?)
  case contents(SuiteRecord?)
  case readOnly(String?)
  /// The lowest first; empty: there are none. And the one to which changes are written.
  case layers([String], written: String)
  case origin(String?)
  case reset(Int)
  case isStale(Bool?)
  case history(SuiteHistoryReply)
  /// The suites that may have changed; nil: any of them.
  case changed([ExactString]?)
}

package struct ListedSuite: Hashable, Sendable {
  package var name: ExactString
  package var stamp: SuiteStamp
}

/// A setting that is set; without a value it is removed.
package struct SuiteEdit: Hashable, Sendable {
  package var key: ExactString
  package var value: SettingValue?
  /// nil: at the commit.
  package var modified: Timestamp?
}

/// A suite at one moment.
package struct SuiteRecord: Hashable, Sendable {
  package var settings: [SuiteEdit]
  package var stamp: SuiteStamp?
  package var readOnly: String?
}

extension SuiteRecord {
  init(_ contents: SuiteContents) {
    settings = contents.settings.map {
      SuiteEdit(key: $0.key, value: $0.value.value, modified: $0.value.modified)
    }
    (stamp, readOnly) = (contents.stamp, contents.readOnly)
  }

  var contents: SuiteContents {
    var all: SharedDictionary<Setting> = [:]
    for setting in settings {
      if let value = setting.value { all[setting.key] = Setting(value, modified: setting.modified) }
    }
    return SuiteContents(settings: all, stamp: stamp, readOnly: readOnly)
  }
}
