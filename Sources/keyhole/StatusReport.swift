import ArgumentParser
import Glibc
import Model
import Mount
import Store
import Synchronization
import Vault

/// The content of `.keyhole/status`: one JSON object. It holds names and reasons, never a value.
final class StatusReport: Sendable {
  private let fixed: [ExactString: SettingValue]
  private let codec: SettingCodec
  private let keychain: KeychainStore?
  private let noted = Mutex<(refusals: Refusals, delays: Delays)?>(nil)
  private let others = Mutex<@Sendable () -> [String]>({ [] })

  /// What was refused and what was slow lately comes from the mount, which is made after this.
  func follow(_ mount: KernelTree) {
    noted.withLock { $0 = (mount.refusals, mount.delays) }
  }

  private let lockers = Mutex<@Sendable () -> String>({ "" })

  /// What locks the keychain by itself; known once the mount runs.
  var locking: @Sendable () -> String {
    get { lockers.withLock { $0 } }
    set { lockers.withLock { $0 = newValue } }
  }

  /// What else a person should know, beside the keychain's own problems.
  func add(problems: @escaping @Sendable () -> [String]) {
    others.withLock { others in
      let before = others
      others = { before() + problems() }
    }
  }

  init(_ options: MountOptions, _ places: Places, _ stores: Stores, _ mountPoint: String) {
    codec = stores.settings.codec
    keychain = stores.keychain
    fixed = [
      "version": .string(ExactString(KeyholeCommand.configuration.version)),
      "pid": .integer(Int128(getpid())),
      "mountpoint": .string(ExactString(mountPoint)),
      "started": .string(ExactString(Timestamp(seconds: Int64(time(nil))).iso8601)),
      "readOnly": .bool(options.isReadOnly),
      "settings": .string(ExactString(places.configuration)),
      "echo": .bool(options.echoesChanges && !options.isReadOnly),
      "keychain": .string(ExactString(stores.keychain?.engine.name ?? "none")),
      "keychainReason": .string(ExactString(stores.explanation)),
      "vault": .string(ExactString(places.vault)),
    ]
  }

  var content: [UInt8] {
    var report = fixed
    report["locked"] = .bool(keychain.map { $0.engine.lockState != .open } ?? false)
    report["locking"] = .string(ExactString(locking()))
    report["sealed"] = .string(ExactString(sealing))
    let noted = noted.withLock { $0 }
    report["refusals"] = .array((noted?.refusals.recent ?? []).map(\.value))
    report["slow"] = .array((noted?.delays.recent ?? []).map(\.value))
    let problems = (keychain?.engine.problems() ?? []).map(\.reason) + others.withLock({ $0 })()
    report["problems"] = .array(problems.map { .string(ExactString($0)) })
    return (try? codec.content(of: .dictionary(report))) ?? []
  }

  private var sealing: String {
    switch (keychain?.engine as? VaultEngine)?.key {
    case .keyFile: "by its key file"
    case .passphrase: "by a passphrase alone"
    case .passphraseAndKeyFile: "by its key file and a passphrase"
    case nil: ""
    }
  }
}

extension Refusals.Entry {
  fileprivate var value: SettingValue {
    .dictionary([
      "time": .string(ExactString(time.iso8601)), "path": .string(ExactString(path)),
      "reason": .string(ExactString(reason)),
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
