import Cluster
import ClusterAccess
import ClusterRecords
package import Control
import EtcdClient
import KeychainSelection
package import Model
package import SecretMemory
import Suites
import VaultRecords

// The part of a member: it lists the others, lets devices in, takes members away, and takes the store as it is.
extension ClusterDevice {
  /// A member of a store, or a request to be one, for people.
  package struct Line {
    package var id: String
    package var isThisDevice: Bool
    package var isRecoveryCode: Bool
  }

  /// The devices that ask to belong to the store. - Throws: `Failure`.
  package func requests() throws -> [String] {
    let (store, cluster) = try open()
    defer { cluster.close() }
    return try attemptAsMember { () throws(StoreError) in try store.requests().map(\.device.id.text) }
  }

  /// Whether this device asks to belong to the store. - Throws: `Failure`.
  package func isAsking() throws -> Bool {
    guard hasAsked else { return false }
    let (store, cluster) = try open()
    defer { cluster.close() }
    return try attempt { () throws(StoreError) in
      try store.requests().contains { $0.device.id == store.device }
    }
  }

  /// The members. - Throws: `Failure`.
  package func members() throws -> [Line] {
    let (store, cluster) = try open()
    defer { cluster.close() }
    return try attemptAsMember { () throws(StoreError) in
      do throws(StoreError) {
        return try store.members().map {
          Line(id: $0.id.text, isThisDevice: $0.id == store.device, isRecoveryCode: $0.kind == .recoveryCode)
        }.sorted { $0.id < $1.id }
      } catch .damaged {
        throw .readOnly(reason: Self.isAnother)
      }
    }
  }

  /// The mount of this store that runs, which knows when the other devices were heard; nil: there is none, or it does not answer.
  package func mount() -> RunningMount? {
    guard let places = try? StoragePaths.current() else { return nil }
    return MountRegistration.serving(in: places.runtime).lazy.compactMap { try? RunningMount($0) }.first {
      $0.store == address.text
    }
  }

  /// The mounts of this store that run, by any address of it.
  package func mounts() -> [MountRegistration] {
    guard let places = try? StoragePaths.current() else { return [] }
    return MountRegistration.serving(in: places.runtime).filter { mount in
      let text = (try? RunningMount(mount))?.store
      return text.flatMap { ClusterAddress($0) }?.store == address.store
    }
  }

  /// The file of this device's keys.
  package var file: String { folders.files(of: address.store).device }

  /// Whether a passphrase seals this device's keys. - Throws: `Failure`.
  package var takesPassphrase: Bool {
    get throws {
      let (store, cluster) = try open()
      defer { cluster.close() }
      return store.needsPassphrase
    }
  }

  /// - Throws: `rejected` for another passphrase than this device's, `locked` for an empty one.
  package func check(_ passphrase: borrowing SecretBytes) throws(StoreError) {
    let cluster = address.cluster(login)
    defer { cluster.close() }
    try ClusterStore(cluster, store: address.store, files: folders.files(of: address.store)).check(passphrase)
  }

  /// Seals this device's keys by another passphrase, or by none where that is empty. - Throws: `Failure`.
  package func changePassphrase(
    _ present: borrowing SecretBytes, to new: borrowing SecretBytes
  ) throws {
    let (store, cluster) = try open()
    defer { cluster.close() }
    try attempt { () throws(StoreError) in
      do throws(StoreError) { try store.changePassphrase(present, to: new) } catch .rejected {
        throw .accessDenied(reason: "this is not this device's passphrase; nothing was changed")
      }
    }
  }

  /// Of a list of members that does not go on from the one that was seen, or is none.
  private static let isAnother =
    "another cluster answers than before, or one that was set back: its list of members is not the one that this device has seen. "
    + "If it was restored on purpose, `keyhole cluster accept` takes it as it is"

  /// Lets the device in whose code was typed. - Returns: its number, and the code for it. - Throws: `Failure`.
  package func approve(
    _ code: String, _ passphrase: borrowing SecretBytes
  ) throws -> (id: String, code: String) {
    let (store, cluster) = try open()
    defer { cluster.close() }
    return try attemptAsMember { () throws(StoreError) in
      try Self.unlock(store, passphrase)
      // One that was forged, or made with another list of members, does not stand in the way of the others.
      guard let request = try store.request(withCode: code) else {
        guard try !store.requests().isEmpty else {
          throw .notPermitted(reason: "no device asks to belong to this store")
        }
        throw .accessDenied(
          reason:
            "no request has this code: the device that shows it has asked another store, or its request was changed"
        )
      }
      do throws(StoreError) {
        let own = try store.code(of: request)
        try store.approve(request.device.id, code: code, passphrase)
        return (request.device.id.text, own)
      } catch .notFound {
        throw .notPermitted(reason: "another device has approved it, or it has withdrawn its request")
      }
    }
  }

  static func check(_ store: ClusterStore, _ passphrase: borrowing SecretBytes) throws(StoreError) {
    do throws(StoreError) { try store.check(passphrase) } catch .rejected {
      throw .accessDenied(reason: "this is not this device's passphrase")
    }
  }

  private static func unlock(_ store: ClusterStore, _ passphrase: borrowing SecretBytes) throws(StoreError) {
    do throws(StoreError) { try store.unlock(passphrase) } catch .rejected {
      throw .accessDenied(reason: "this is not this device's passphrase")
    }
  }

  /// Takes a member away, by the beginning of its number; nil: none. All keys are made new. Without a member, a rotation that was interrupted goes on.
  ///
  /// - Throws: `Failure`, which says what was done.
  package func rotate(removing prefix: String?, _ passphrase: borrowing SecretBytes) throws {
    let (store, cluster) = try open()
    defer { cluster.close() }
    var done = ""
    try attemptAsMember { () throws(StoreError) in
      try Self.unlock(store, passphrase)
      var removed: [ItemKey] = []
      if let prefix {
        removed = try store.members().map(\.id).filter { $0.text.hasPrefix(prefix) }
        guard removed.count == 1 else {
          let rest =
            store.isRotating
            ? "; the last rotation of the keys is not finished: `keyhole cluster rotate` goes on" : ""
          throw .notPermitted(
            reason: (removed.isEmpty
              ? "no member has this number" : "several members' numbers begin like this") + rest)
        }
      }
      done = prefix == nil ? "the keys are new" : "the member is removed, and the keys are new"
      // One that was interrupted goes on: its keys are the newest.
      guard prefix != nil || !store.isRotating else { return }
      try store.beginRotation(removing: removed, passphrase)
    }
    let (suites, keychain) = (store.suites(propertyLists: PropertyLists()), store.keychain())
    defer {
      suites.close()
      keychain.close()
    }
    do throws(StoreError) { try store.finishRotation(suites: suites, keychain: keychain) } catch {
      throw Failure(
        address.text,
        "\(done); not everything is sealed under them yet: \(error.message). `keyhole cluster rotate` goes on",
        error.failureKind)
    }
  }

  /// Removes a suite that is damaged, for all devices. - Throws: `Failure`.
  package func discard(_ suite: ExactString, _ passphrase: borrowing SecretBytes) throws {
    let (store, cluster) = try open()
    defer { cluster.close() }
    try attempt { () throws(StoreError) in
      try Self.unlock(store, passphrase)
      let suites = store.suites(propertyLists: PropertyLists())
      defer { suites.close() }
      do throws(StoreError) { try suites.discard(suite) } catch .notFound {
        throw .notPermitted(reason: "the store has no suite \(suite.string)")
      }
    }
  }

  /// Takes the cluster as it is now for the state to begin with.
  ///
  /// - Returns: whether a member that was removed may be one again.
  /// - Throws: `Failure`.
  package func accept(_ passphrase: borrowing SecretBytes) throws -> Bool {
    let (store, cluster) = try open()
    defer { cluster.close() }
    return try attemptAsMember { () throws(StoreError) in
      do throws(StoreError) { return try store.accept(passphrase) } catch .rejected {
        throw .accessDenied(reason: "this is not this device's passphrase")
      } catch .damaged {
        throw .notPermitted(
          reason:
            "the store that this device has seen is not in the cluster that answers, so there is nothing to accept: look at the address, or "
            + "restore a snapshot of the store")
      }
    }
  }

  /// A line for each server, whether it answers, and whether it has a leader: without one there is no majority. It takes two seconds at most.
  package func servers() -> [(line: String, answers: Bool, hasLeader: Bool)] {
    let cluster = address.cluster(login)
    defer { cluster.close() }
    return cluster.memberStatus().map { endpoint, status in
      switch status {
      case .success(let status):
        let role =
          status.leader == status.header.member ? "leads" : status.leader == 0 ? "has no leader" : "follows"
        let errors = status.errors.isEmpty ? "" : "; " + status.errors.joined(separator: "; ")
        let line =
          "\(endpoint.description)  etcd \(status.version), \(role), \(status.fileSize >> 10) KiB\(errors)"
        return (line, true, status.leader != 0)
      case .failure(let error):
        return ("\(endpoint.description)  does not answer: \(error.reason)", false, false)
      }
    }
  }
}

extension ClusterError {
  fileprivate var reason: String {
    switch self {
    case .unavailable(let reason), .outcomeUnknown(let reason), .tooLarge(let reason),
      .unauthorized(let reason),
      .wrongCluster(let reason), .refused(let reason):
      reason
    case .compacted: "compacted"
    case .noSpace: "its quota is used up"
    }
  }
}
