import Model
import Store

extension KeychainServer {
  func serveHistory(_ request: ControlMessage) throws(StoreError) {
    switch request {
    case .fetchVersions(let identity?): channel.send(.versions(try store.versions(of: identity)))
    case .fetchVersions(nil): channel.send(.identities(try store.identitiesWithVersions()))
    case .restore(let version): try restore(version)
    case .purge(let identity?):
      try requireWritable()
      channel.send(.count(UInt64(clamping: try store.purgeVersions(of: identity))))
    case .purge(nil):
      try requireWritable()
      channel.send(.count(UInt64(clamping: try store.purgeAllVersions())))
    default: throw WireReader.unreadable
    }
  }

  private func restore(_ id: ItemID) throws(StoreError) {
    try requireWritable()
    try store.load()
    let version = try store.engine.requireHistory().version(id)
    let permission = try store.permission(toRestore: version, path: path(version.item), by: peer.caller)
    guard let permission else { return sendDone([try store.restore(version).id]) }
    sendDone([try store.restore(version, permit(permission)).id])
  }
}
