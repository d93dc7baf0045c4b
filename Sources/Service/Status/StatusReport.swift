import ClusterAccess
import Control
import KeychainSelection
import Model
import Mount
import Platform
import Store
import Synchronization

/// The content of `.keyhole/status`, and the report of the Secret Service without a mount: one JSON object. It holds names and reasons, never a value.
final class StatusReport: Sendable {
  private let fixed: [ExactString: SettingValue]
  private let codec: SettingCodec
  private let keychain: KeychainStore?
  private let configuration: MountConfiguration
  /// Of the suites.
  private let folder: String
  private let noted = Mutex<(refusals: Refusals, delays: Delays)?>(nil)
  private let sources = StatusSources()

  /// Latest refusals and slow calls come from the mount, which is made after this.
  func follow(_ mount: TreeFileSystem) {
    noted.withLock { $0 = (mount.refusals, mount.delays) }
    sources.change { $0.reportDidEnd = { [weak mount] in mount?.planMemoryRelease() } }
  }

  /// The state of the cluster whose store is shown.
  func follow(_ cluster: OpenedCluster) {
    sources.change { $0.cluster = { cluster.report } }
  }

  /// How a person can approve the use of an item, where that is limited; known once the mount runs.
  var approval: @Sendable () -> String {
    get { sources.all.approval }
    set { sources.change { $0.approval = newValue } }
  }

  /// The events that lock the keychain; known once the mount runs.
  var locking: @Sendable () -> String {
    get { sources.all.locking }
    set { sources.change { $0.locking = newValue } }
  }

  /// The address of the bus on which the Secret Service is served; empty: it is not.
  var bus: @Sendable () -> String {
    get { sources.all.bus }
    set { sources.change { $0.bus = newValue } }
  }

  /// The faults of views; known once there is a tree.
  var faultsOfViews: @Sendable () -> [Problem] {
    get { sources.all.faultsOfViews }
    set { sources.change { $0.faultsOfViews = newValue } }
  }

  /// Other problems to report, beside the keychain's own.
  func add(problems: @escaping @Sendable () -> [String]) {
    sources.change { $0.problems.append(problems) }
  }

  /// `mountPoint`: `MountRegistration.serviceName` where the Secret Service is served without a mount.
  init(
    _ options: MountOptions, _ configuration: MountConfiguration, _ places: StoragePaths, _ stores: Stores,
    _ mountPoint: String, version: String
  ) {
    self.configuration = configuration
    folder = places.configuration
    codec = stores.settings.codec
    keychain = stores.keychain
    let program = ProgramStamp.current()
    fixed = [
      "program": .string(ExactString(program?.path ?? "")),
      "programStamp": .string(ExactString(program?.stamp ?? "")),
      "version": .string(ExactString(version)),
      "pid": .integer(Int128(CurrentProcess.number)),
      "mountpoint": .string(ExactString(mountPoint == MountRegistration.serviceName ? "" : mountPoint)),
      "secretService": .bool(options.servesSecretService || mountPoint == MountRegistration.serviceName),
      "started": .string(ExactString(Timestamp(seconds: SystemTime.now.seconds).iso8601)),
      "readOnly": .bool(options.isReadOnly),
      "settings": .string(ExactString(options.settingsPlace(places))),
      "echo": .bool(configuration.present.isOn(.echo) && !options.isReadOnly),
      "keychain": .string(ExactString(stores.keychain?.engine.name ?? "none")),
      "keychainReason": .string(
        ExactString(mountPoint == MountRegistration.serviceName ? "vault" : stores.explanation)),
      "vault": .string(ExactString(places.vault)),
    ]
  }

  var content: [UInt8] {
    // A report needs code that a mount rarely needs.
    defer { sources.all.reportDidEnd() }
    var report = fixed
    report["locked"] = .bool(keychain.map { $0.engine.locking.lockState != .open } ?? false)
    report["needsPassphrase"] = .bool(keychain?.engine.locking.needsPassphrase ?? false)
    report["asksToUnlock"] = .bool(keychain?.unlocking?.options.asks ?? false)
    report["locking"] = .string(ExactString(locking()))
    report["approval"] = .string(ExactString(approvalWithRemedy))
    report["bus"] = .string(ExactString(sources.all.bus()))
    report["sealed"] = .string(ExactString(sealing))
    let noted = noted.withLock { $0 }
    report["refusals"] = .array((noted?.refusals.recent ?? []).map(\.value))
    report["slow"] = .array((noted?.delays.recent ?? []).map(\.value))
    let cluster = sources.all.cluster()
    let ofKeychain =
      (keychain?.engine.problems() ?? []) + sources.all.faultsOfViews()
      + (cluster?.problems ?? [])
    report["keychainProblems"] = .array(ofKeychain.map(\.value))
    report["keychainTrust"] = keychain?.engine.trust.value ?? KeychainTrust.trusted.value
    if let cluster { report["cluster"] = cluster.value }
    report["configuration"] = configuration.report
    let known = ofKeychain + configuration.suite.problems(in: folder)
    let problems = known.map { "\($0.subject): \($0.reason)" } + sources.all.problems.flatMap { $0() }
    report["problems"] = .array(problems.map { .string(ExactString($0)) })
    return (try? codec.content(of: .dictionary(report))) ?? []
  }

  /// For `approval`. `reason`: why no session is known in which a person could be asked for plain consent.
  static func withoutConsent(_ reason: String) -> String {
    "by the passphrase only, because \(reason)"
  }

  private var approvalWithRemedy: String {
    let approval = approval()
    guard !approval.isEmpty, let keychain, !keychain.engine.locking.hasPasscode(sealed: true) else {
      return approval
    }
    return approval
      + ": the keychain has none, so an item that needs approval is denied; `keyhole passphrase` sets a passphrase"
  }

  private var sealing: String { keychain?.engine.encryption?.keyDescription ?? "" }
}

/// The functions that parts of a status report come from.
final class StatusSources: Sendable {
  struct All: Sendable {
    var approval: @Sendable () -> String = { "" }
    var bus: @Sendable () -> String = { "" }
    var cluster: @Sendable () -> ClusterReport? = { nil }
    var faultsOfViews: @Sendable () -> [Problem] = { [] }
    var locking: @Sendable () -> String = { "" }
    var problems: [@Sendable () -> [String]] = []
    var reportDidEnd: @Sendable () -> Void = {}
  }

  // In a structure: around a function that is the value of a `Mutex` itself, each access leaves another thunk, until a call
  // overflows the stack.
  private let state = Mutex(All())

  var all: All { state.withLock { $0 } }

  func change(_ body: (inout All) -> Void) { state.withLock { body(&$0) } }
}

extension Refusals.Entry {
  fileprivate var value: SettingValue {
    .dictionary([
      "time": .string(ExactString(time.iso8601)), "path": .string(ExactString(path)),
      "reason": .string(ExactString(reason)), "settled": .bool(isSettled),
      // The text of the time is for people, and has whole seconds.
      "nanoseconds": .integer(Int128(time.nanoseconds)),
    ])
  }
}

extension Delays.Entry {
  fileprivate var value: SettingValue {
    .dictionary([
      "time": .string(ExactString(time.iso8601)), "path": .string(ExactString(path)),
      "milliseconds": .integer(Int128(milliseconds)),
    ])
  }
}

extension Problem {
  var value: SettingValue {
    .dictionary([
      "subject": .string(ExactString(subject)), "reason": .string(ExactString(reason)),
      "remedy": .string(ExactString(remedy)),
    ])
  }

  fileprivate init?(_ value: SettingValue) {
    guard case .dictionary(let fields) = value, case .string(let subject)? = fields["subject"],
      case .string(let reason)? = fields["reason"], case .string(let remedy)? = fields["remedy"]
    else { return nil }
    self.init(subject: subject.string, reason: reason.string, remedy: remedy.string)
  }

  /// Those of a list in a status report.
  static func all(in value: SettingValue?) -> [Problem] {
    guard case .array(let values)? = value else { return [] }
    return values.compactMap { Problem($0) }
  }
}

extension KeychainTrust {
  var value: SettingValue {
    switch self {
    case .trusted: .dictionary([:])
    case .firstUse(let changed): .dictionary(["firstUse": .string(ExactString(changed.iso8601))])
    case .distrusted(let problem): .dictionary(["distrusted": problem.value])
    }
  }

  /// Reads the content of a status report.
  init(_ value: SettingValue?) {
    guard case .dictionary(let fields)? = value else {
      self = .trusted
      return
    }
    if let problem = fields["distrusted"].flatMap({ Problem($0) }) {
      self = .distrusted(problem)
    } else if case .string(let text)? = fields["firstUse"], let changed = Timestamp(iso8601: text.string) {
      self = .firstUse(lastChange: changed)
    } else {
      self = .trusted
    }
  }
}
