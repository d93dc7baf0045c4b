public import Model

/// The conditions that the user has to meet before a secret is given.
public indirect enum Demand: Hashable, Sendable {
  /// To say yes.
  case consent
  case biometry
  /// A biometry of the set of this digest, which was enrolled when the flag was set.
  case biometryOfSet(String)
  case passcode
  /// One of them.
  case any([Demand])
  /// All of them.
  case all([Demand])
}

extension AccessFlags {
  /// The demand of the flags on the user, except the application password.
  ///
  /// Constraints that neither `or` nor `and` joins all have to be met.
  ///
  /// - Parameters:
  ///   - set: the digest of the fingers that `biometryCurrentSet` means.
  ///   - isButton: whether a yes meets `userPresence`, as the setting `presence-button` says.
  /// - Returns: nil: they demand nothing of the user.
  public func demand(ofSet set: String = "", presenceByButton isButton: Bool = false) -> Demand? {
    let demands = flags.compactMap { flag in
      flag == .userPresence && isButton ? .consent : flag.demand(ofSet: set)
    }
    guard demands.count > 1 else { return demands.first }
    return flags.contains(.or) ? .any(demands) : .all(demands)
  }

  /// Whether the item has a password of its own (`applicationPassword`).
  public var needsPassword: Bool { flags.contains(.applicationPassword) }
}

extension Item {
  /// Whether a keychain of another program gets its secret sealed: a password of its own takes that.
  public var isToBeSealed: Bool { isSealed || access.needsPassword }

  /// - Throws: `invalidValue` where the item has no password of its own.
  public func requirePassword() throws(StoreError) {
    guard !access.needsPassword else { return }
    throw .invalidValue(
      reason:
        "the item has no password of its own; `applicationPassword` in `user.keyhole.access` gives it one")
  }
}

extension AccessFlags.Flag {
  fileprivate func demand(ofSet set: String) -> Demand? {
    switch self {
    case .userPresence: .any([.biometry, .passcode])
    case .biometryAny: .biometry
    case .biometryCurrentSet: .biometryOfSet(set)
    case .devicePasscode: .passcode
    case .applicationPassword, .or, .and: nil
    }
  }
}

extension Demand {
  /// Whether it matters which fingers are enrolled.
  private var namesSet: Bool {
    switch self {
    case .consent, .biometry, .passcode: false
    case .biometryOfSet: true
    case .any(let demands), .all(let demands): demands.contains { $0.namesSet }
    }
  }

  /// The part that is still to be met; nil: it can't be met, because other fingers are enrolled than were.
  ///
  /// `enrolled` gives the digest of those that are, and is called only where it matters.
  public func settled(_ enrolled: () -> String?) -> Demand? {
    guard namesSet else { return self }
    return settled(by: enrolled() ?? "")
  }

  private func settled(by enrolled: String) -> Demand? {
    switch self {
    case .consent, .biometry, .passcode: return self
    case .biometryOfSet(let set): return !set.isEmpty && set == enrolled ? .biometry : nil
    case .any(let demands):
      let left = demands.compactMap { $0.settled(by: enrolled) }
      return left.count > 1 ? .any(left) : left.first
    case .all(let demands):
      let left = demands.compactMap { $0.settled(by: enrolled) }
      return left.count == demands.count ? .all(left) : nil
    }
  }
}

extension Item {
  /// The digest of the fingers that `biometryCurrentSet` means; empty: none was noted.
  private var enrolledSet: String {
    String(decoding: attributes[FingerprintEnrollment.attribute] ?? [], as: UTF8.self)
  }

  var demand: Demand? { access.demand(ofSet: enrolledSet) }

  /// The demand to open it where a yes meets `userPresence`. A change of its protection takes ``demand``.
  var demandByButton: Demand? { access.demand(ofSet: enrolledSet, presenceByButton: true) }
}

/// The factors that the user can be asked for on this machine, besides a plain yes.
public struct ApprovalFactors: OptionSet, Sendable {
  /// The bits of the set.
  public let rawValue: Int

  /// Factors of these bits.
  public init(rawValue: Int) {
    self.rawValue = rawValue
  }

  /// A passphrase of the vault, or a PAM service.
  public static let passcode = ApprovalFactors(rawValue: 1)
  /// PAM's service `keyhole-biometry`, such as a fingerprint reader.
  public static let biometry = ApprovalFactors(rawValue: 2)
  /// Every factor: for machines of which it is not known what they have.
  public static let all: ApprovalFactors = [.passcode, .biometry]
}

extension Demand {
  /// Whether a person can meet it with these factors: by one branch of an `or`, by all of an `and`.
  public func isSatisfiable(with factors: ApprovalFactors) -> Bool {
    switch self {
    case .consent: true
    case .passcode: factors.contains(.passcode)
    case .biometry, .biometryOfSet: factors.contains(.biometry)
    case .any(let demands): demands.contains { $0.isSatisfiable(with: factors) }
    case .all(let demands): demands.allSatisfy { $0.isSatisfiable(with: factors) }
    }
  }
}

extension AccessFlags {
  /// - Throws: `unsupported` for flags that can't be met on this machine: they would lock their owner out.
  public func requireSatisfiable(with factors: ApprovalFactors) throws(StoreError) {
    guard let demand = demand(), !demand.isSatisfiable(with: factors) else { return }
    let remedy =
      flags.contains(where: { $0 == .userPresence || $0 == .devicePasscode })
      ? "`keyhole passphrase` sets a passphrase, which meets userPresence and devicePasscode"
      : "biometry needs a fingerprint reader and a PAM service `keyhole-biometry`"
    throw .unsupported(reason: "nothing here can meet `\(text)`; \(remedy)")
  }
}
