import Model
import SecretMemory
import Store

extension KeychainServer {
  /// No more than the code: what it is computed from stays here.
  func sendCode(of id: ItemID) throws(StoreError) {
    let item = try found(id)
    let permit = try permit(
      store.permission(for: item, to: .read, .code, path: path(item), by: peer.caller))
    let code = try service.oneTimeCode(of: item, permit)
    try peer.check()
    channel.send(.code(code.moment), secret: code.digits)
  }

  /// As `rewrite`, of the second secret: the other side changes what it was given, until that is still what is stored.
  func rewriteOtpauth(_ id: ItemID, readingSecret: Bool) throws(StoreError) {
    try requireWritable()
    var stored = try found(id)
    let permit = try permit(
      store.permission(
        for: stored, to: readingSecret ? .readWrite : .write, .otpauth, path: path(stored), by: peer.caller))
    while true {
      let isRead = readingSecret && stored.otpauth != nil
      let secret = try isRead ? store.otpauth(of: stored, permit) : Self.noSecret()
      try peer.check()
      channel.send(.stored(look([id])), secret: secret)
      let reply = try channel.receive()
      guard case .changed(let items) = reply.content, let changed = items.first,
        let new = reply.takeSecret()
      else { throw WireReader.unreadable }
      if try rewriteOtpauth(stored, secret, to: changed.otpauth, new, readingSecret, permit) {
        return sendDone([id])
      }
      try store.refresh()
      stored = try found(id)
    }
  }

  /// False: it was changed meanwhile.
  private func rewriteOtpauth(
    _ stored: Item, _ secret: borrowing SecretBytes, to changed: FurtherSecret?,
    _ new: borrowing SecretBytes, _ readsSecret: Bool, _ permit: Permit
  ) throws(StoreError) -> Bool {
    var isSame = true
    do throws(StoreError) {
      try store.rewriteOtpauth(of: stored.id, readingSecret: readsSecret, permit) {
        (further, present) throws(StoreError) in
        isSame = further == stored.otpauth && (!readsSecret || present == secret)
        guard isSame else { throw .interrupted }
        further = changed
        do { present = try SecretBytes(copying: new) } catch { throw .outOfMemory }
      }
    } catch {
      if isSame { throw error }
    }
    return isSame
  }
}
