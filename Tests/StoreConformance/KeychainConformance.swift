public import Model
public import SecretMemory
public import Store

/// The rules of every `KeychainEngine`, as cases to run on a fresh, empty keychain each.
///
///     @Test(arguments: KeychainConformance.cases)
///     func keepsTheProtocol(_ test: KeychainConformance.Case) throws {
///       let first = MemoryKeychain()
///       try test.run { MemoryKeychain(sharing: first) }
///     }
public enum KeychainConformance {
  /// One behaviour, named as a claim.
  public struct Case: Sendable, CustomStringConvertible {
    public let description: String
    let body: @Sendable (Keychain) throws -> Void

    /// Runs the case on a keychain, which `open` opens once more with each call.
    ///
    /// `comparable` takes out of an item what the keychain can't keep; `catchUp` returns when an engine has
    /// heard what others did, where it does not look by itself. - Throws: `Failure`, or what the engine threw.
    public func run(
      _ open: @escaping () throws -> any KeychainEngine, comparable: @escaping (Item) -> Item = { $0 },
      catchUp: @escaping (any KeychainEngine) throws -> Void = { _ in }
    ) throws {
      try body(Keychain(open: open, comparable: comparable, catchUp: catchUp))
    }
  }

  /// The keychain of a case.
  struct Keychain {
    let open: () throws -> any KeychainEngine
    let comparable: (Item) -> Item
    let catchUp: (any KeychainEngine) throws -> Void

    func callAsFunction() throws -> any KeychainEngine { try open() }

    func same(_ left: Item?, _ right: Item?) -> Bool { left.map(comparable) == right.map(comparable) }

    func same(_ left: [Item]?, _ right: [Item]?) -> Bool {
      left.map { Set($0.map(comparable)) } == right.map { Set($0.map(comparable)) }
    }

    /// The items after what others have changed of `known`; nil: nothing.
    func news(of engine: any KeychainEngine, since known: [Item] = []) throws -> [Item]? {
      try catchUp(engine)
      return try engine.changes().items(since: known)
    }
  }

  /// An engine did not do what its protocol says.
  public struct Failure: Error, CustomStringConvertible {
    public let description: String
  }

  public static let cases: [Case] = casesWithoutPasswords + passwords + secondSecretsWithPasswords

  /// For an engine behind which another process asks for passwords.
  public static let casesWithoutPasswords: [Case] = lifetimes + changes + secondSecrets + company
}

extension KeychainConformance {
  /// Fails the case unless `condition` holds.
  static func require(_ condition: Bool, _ claim: String, line: Int = #line) throws {
    guard condition else { throw Failure(description: "not so: \(claim) (line \(line))") }
  }

  /// Fails the case unless `body` throws `error`, whatever its reason.
  static func require(_ error: StoreError, line: Int = #line, _ body: () throws -> Void) throws {
    do {
      try body()
    } catch let thrown as StoreError where kind(thrown) == kind(error) {
      return
    } catch {
      throw Failure(description: "threw \(error) (line \(line))")
    }
    throw Failure(description: "did not throw \(error) (line \(line))")
  }

  private static func kind(_ error: StoreError) -> Substring { "\(error)".prefix { $0 != "(" } }
}

/// Items and secrets for tests. The secrets are no secrets: they may be written in a test's text.
public enum KeychainSamples {
  public static let time = Timestamp(seconds: 1_700_000_000, nanoseconds: 123_456_789)

  /// A generic password with no more than it needs.
  public static func generic(_ service: ExactString, _ account: ExactString = "me") -> Item {
    Item(
      id: ItemID(rawValue: "new"), identity: .generic(service: service, account: account),
      created: time, modified: time)
  }

  /// An item that has everything an item can have, within a keychain's limits.
  static func full(_ engine: any KeychainEngine) -> Item {
    var item = full()
    if engine.limits.refusedClasses.contains(item.accessibility) { item.accessibility = .afterFirstUnlock }
    return item
  }

  /// An item that has everything an item can have.
  public static func full() -> Item {
    let identity = InternetIdentity(
      server: "exämple.org", account: "e\u{301}", domain: "realm", protocol: "https",
      authenticationType: "httpBasic", port: 0, path: "/a\nb")
    return Item(
      id: ItemID(rawValue: "new"), identity: .internet(identity), label: "",
      created: Timestamp(seconds: -5, nanoseconds: 999_999_999), modified: time,
      accessibility: .afterFirstUnlockThisDeviceOnly, access: [.biometryAny, .or, .devicePasscode],
      programs: "allow /usr/bin/ssh\n*\n", keepsLineEnd: true,
      attributes: ["comment": Array("hello".utf8), "": [], "generic": [0, 255], "é": [1], "e\u{301}": [2]])
  }

  public static func secret(_ text: String) throws(SecretMemoryError) -> SecretBytes {
    try secret(Array(text.utf8))
  }

  public static func secret(_ bytes: [UInt8]) throws(SecretMemoryError) -> SecretBytes {
    var secret = try SecretBytes(count: bytes.count)
    unsafe secret.withUnsafeMutableBytes { unsafe $0.copyBytes(from: bytes) }
    return secret
  }

  /// The bytes of a secret that was made for a test.
  public static func bytes(_ secret: borrowing SecretBytes) -> [UInt8] {
    unsafe secret.withUnsafeBytes { unsafe Array($0) }
  }
}

extension KeychainEngine {
  /// The same keychain, for an item of this password. - Throws: `unsupported` where it seals with none.
  public func using(_ password: ItemPassword) throws(StoreError) -> any KeychainEngine {
    try requirePasswords().using(password)
  }

  /// The bytes of a test's secret.
  public func bytes(of item: ItemID) throws -> [UInt8] {
    KeychainSamples.bytes(try secret(of: item))
  }

  /// Adds an item with a test's secret.
  @discardableResult public func add(_ item: Item, _ secret: String) throws -> Item {
    try add(item, secret: KeychainSamples.secret(secret))
  }

  /// Replaces an item's secret by a test's.
  @discardableResult public func set(_ item: ItemID, _ secret: [UInt8]) throws -> Item {
    let new = try KeychainSamples.secret(secret)
    return try rewrite(item, readingSecret: false) { _, present throws(StoreError) in
      do { present = try SecretBytes(copying: new) } catch { throw .outOfMemory }
    }
  }
}
