public import Model
public import SecretMemory
public import Store

extension MountedKeychain: LockingKeychain {
  /// The lock of the mount's keychain.
  public var locking: any LockingKeychain { self }

  /// The lock as the mount last reported it; locked without a mount.
  public var lockState: KeychainLock { memory.state.lock }

  /// Whether the mount's keychain takes a passphrase, as last reported.
  public var needsPassphrase: Bool { memory.state.needsPassphrase }

  /// As the mount last reported it.
  public func hasPasscode(sealed: Bool) -> Bool {
    let state = memory.state
    return sealed ? state.hasPasscodeForSealed : state.hasPasscode
  }

  /// Throws `unsupported`: the mount's process locks its keychain itself.
  public func lock() throws(StoreError) {
    throw .unsupported(reason: "the mount locks it; `keyhole lock` has it done")
  }

  /// Throws `unsupported`: the mount's process unlocks its keychain itself.
  public func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError) {
    throw .unsupported(reason: "the mount unlocks it; `keyhole unlock` has it done")
  }
}

extension MountedKeychain {
  /// true: it is a vault's, and the mount's process decides on each change.
  public var authenticatesItems: Bool { true }

  /// That of the mount's keychain, as last reported.
  public var host: ExactString? { memory.state.host }
}

extension MountedKeychain: PasswordKeychain {
  /// nil: the mount's keychain does not seal with passwords, as last reported.
  public var passwords: (any PasswordKeychain)? { memory.state.sealsWithPasswords ? self : nil }

  /// The mount's process asks for the password.
  public func using(_ password: ItemPassword) throws(StoreError) -> any KeychainEngine { self }

  /// Throws `accessDenied`: the mount's process asks for both passwords (`changePassword(of:)`).
  public func changePassword(
    of item: ItemID, from present: ItemPassword, to new: ItemPassword
  ) throws(StoreError) {
    throw .accessDenied(reason: "it takes the item's present password")
  }
}

extension MountedKeychain: OneTimeCodeKeychain {
  /// The mount computes codes.
  public var oneTimeCodes: (any OneTimeCodeKeychain)? { self }

  /// The present code: the mount asks the person, and keeps the URI.
  public func oneTimeCode(of item: ItemID) throws(StoreError) -> OneTimeCode {
    let reply = try request(.fetchCode(item)).channel.reply()
    guard case .code(let moment) = reply.content, let digits = reply.takeSecret() else {
      throw WireReader.unreadable
    }
    return OneTimeCode(digits: digits, moment: moment)
  }
}

extension MountedKeychain: OtpauthKeychain {
  /// nil: the mount's keychain holds no `otpauth:` URIs, as last reported.
  public var otpauthURIs: (any OtpauthKeychain)? { memory.state.holdsOtpauth ? self : nil }

  /// The URI, as `secret(of:)`.
  public func otpauth(of item: ItemID) throws(StoreError) -> SecretBytes {
    let reply = try request(.fetchOtpauth(item)).channel.reply()
    guard let secret = reply.takeSecret() else { throw WireReader.unreadable }
    return secret
  }

  /// Changes the URI: the mount reads and stores, `body` runs in this process.
  public func rewriteOtpauth(
    of item: ItemID, readingSecret: Bool,
    _ body: (inout FurtherSecret?, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    let call = try request(.rewriteOtpauth(item, readingSecret: readingSecret))
    return try rewrite(call) { (item, secret) throws(StoreError) in try body(&item.otpauth, &secret) }
  }

  /// In two steps; what the second one refuses takes back the first.
  public func add(
    _ item: Item, secret: borrowing SecretBytes, otpauth: borrowing SecretBytes
  ) throws(StoreError) -> Item {
    let added = try add(item, secret: secret)
    guard let further = item.otpauth else { return added }
    do throws(StoreError) {
      return try rewriteOtpauth(of: added.id, readingSecret: false) { present, secret throws(StoreError) in
        present = further
        do { secret = try SecretBytes(copying: otpauth) } catch { throw .outOfMemory }
      }
    } catch {
      try remove([added.id])
      throw error
    }
  }
}
