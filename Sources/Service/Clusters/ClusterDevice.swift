import Cluster
package import ClusterAccess
import ClusterRecords
import EtcdClient
import KeychainSelection
package import Model
import Platform
package import SecretMemory
import Store
import Suites
package import VaultRecords

/// This device's part in a store of a cluster, for `keyhole cluster`: it makes stores, asks to belong to them, and lets others in.
///
/// It opens the cluster itself, as no mount need be there.
package struct ClusterDevice {
  package let address: ClusterAddress
  private let login: EtcdLogin?
  private let folders: ClusterFolders

  /// `address`: nil is that of the one store that this device knows. - Throws: `Failure`.
  package init(_ address: ClusterAddress?, passwordDescriptor: Int32?) throws {
    folders = try StoragePaths.current().clusters
    self.address = try address ?? Self.known(folders)
    if let problem = self.address.problem { throw Failure(self.address.text, problem) }
    login = try ClusterOptions.login(self.address, passwordDescriptor)
  }

  private static func known(_ folders: ClusterFolders) throws -> ClusterAddress {
    let addresses = folders.stores.compactMap { folders.address(of: $0) }
    guard let first = addresses.first, addresses.count == 1 else {
      throw Failure(
        nil,
        addresses.isEmpty
          ? "this device knows no store of a cluster; --store etcd://HOST:PORT/STORE names one"
          : "this device knows several stores; --store names one: "
            + addresses.map(\.text).joined(separator: ", "))
    }
    return first
  }

  private func attempt<Value: ~Copyable>(_ body: () throws(StoreError) -> Value) throws -> Value {
    do throws(StoreError) { return try body() } catch { throw Failure(address.text, error) }
  }

  /// The same of a member: where it succeeds, the next command uses this address too.
  private func attemptAsMember<Value: ~Copyable>(_ body: () throws(StoreError) -> Value) throws -> Value {
    let value = try attempt(body)
    folders.noteUse(of: address)
    return value
  }

  /// Makes the store, with this device as its first member, and a recovery code; or goes on where that was interrupted.
  ///
  /// - Throws: `Failure`.
  package func create(_ passphrase: borrowing SecretBytes) throws -> SlotSecret {
    folders.make()
    let cluster = address.cluster(login)
    defer { cluster.close() }
    let store = try attempt { () throws(StoreError) in
      do throws(StoreError) {
        return try ClusterStore.create(
          cluster, store: address.store, files: folders.files(of: address.store), passphrase: passphrase)
      } catch .exists {
        throw .notPermitted(reason: existing)
      } catch .rejected {
        throw .accessDenied(
          reason:
            "this device has begun to make the store with another passphrase: `keyhole cluster init` takes that one"
        )
      }
    }
    try attempt { () throws(StoreError) in try folders.note(address) }
    do throws(StoreError) { return try store.makeRecoveryCode(passphrase) } catch {
      throw Failure(
        address.text,
        "the store is made, and has no recovery code yet: \(error.message); `keyhole cluster init` again makes one"
      )
    }
  }

  /// Why a store is not made.
  private var existing: String {
    guard folders.hasConfirmed(address.store) else {
      return "the store is there already; `keyhole cluster join` asks to belong to it"
    }
    do {
      guard try members().contains(where: \.isThisDevice) else { return Self.hasKeys }
    } catch { return "this device has keys for a store of this name: \((error as? Failure)?.reason ?? "")" }
    return
      "this device belongs to the store already, and that has a recovery code. Where the code is lost, `keyhole cluster members` has its "
      + "number, `keyhole cluster remove NUMBER` takes it away, and then `keyhole cluster init` makes another one"
  }

  /// Whether this device has asked to belong to the store, and not confirmed its code.
  package var hasAsked: Bool {
    folders.hasDevice(for: address.store) && !folders.hasConfirmed(address.store)
  }

  /// Asks for this device to belong to the store. - Returns: the code for the other device. - Throws: `Failure`.
  package func ask(_ passphrase: borrowing SecretBytes) throws -> String {
    folders.make()
    let isNew = !folders.hasDevice(for: address.store)
    let cluster = address.cluster(login)
    defer { cluster.close() }
    let code = try attempt { () throws(StoreError) in
      do throws(StoreError) {
        return try ClusterStore.requestJoining(
          cluster, store: address.store, files: folders.files(of: address.store), passphrase: passphrase)
      } catch .exists {
        throw .notPermitted(reason: Self.hasKeys)
      } catch .notFound {
        throw .notPermitted(
          reason: "there is no such store: `keyhole cluster init` makes one, or the address is another")
      } catch {
        // It has asked for nothing. Keys that were there before are kept, also where their file can't be read now.
        if isNew { folders.forgetDevice(of: address.store) }
        throw error
      }
    }
    try attempt { () throws(StoreError) in try folders.note(address) }
    return code
  }

  /// The code of this device, which has asked; nil: it was approved. Where its request can't be approved any more, it asks again.
  ///
  /// - Throws: `Failure`.
  package func askAgain(_ passphrase: borrowing SecretBytes) throws -> String? {
    let (store, cluster) = try open()
    defer { cluster.close() }
    return try attempt { () throws(StoreError) in
      try Self.check(store, passphrase)
      return try store.renewRequest(passphrase)
    }
  }

  private static let hasKeys =
    "this device has keys for this store already; where it was removed, `keyhole cluster join --withdraw` forgets them, and then it can ask again"

  /// A person has typed the code that the approving device shows. - Throws: `Failure`.
  package func confirm(_ code: String, _ passphrase: borrowing SecretBytes) throws {
    let (store, cluster) = try open()
    defer { cluster.close() }
    try attempt { () throws(StoreError) in
      // The passphrase first: a wrong one is not to be taken for a wrong code.
      try Self.check(store, passphrase)
      do throws(StoreError) { try store.confirm(code: code, passphrase) } catch .rejected {
        throw .accessDenied(
          reason: "this is not the code of the store that answers here: compare both, and type nothing else")
      }
    }
  }

  /// Makes this device a member by the recovery code. - Throws: `Failure`.
  package func recover(_ code: SlotSecret, _ passphrase: borrowing SecretBytes) throws {
    folders.make()
    let isNew = !folders.hasDevice(for: address.store)
    let cluster = address.cluster(login)
    defer { cluster.close() }
    if !isNew {
      let store = try attempt { () throws(StoreError) in
        try ClusterStore(cluster, store: address.store, files: folders.files(of: address.store))
      }
      try attempt { () throws(StoreError) in try Self.check(store, passphrase) }
    }
    try attempt { () throws(StoreError) in
      do throws(StoreError) {
        _ = try ClusterStore.recover(
          cluster, store: address.store, files: folders.files(of: address.store), code: code,
          passphrase: passphrase)
      } catch .exists {
        throw .notPermitted(reason: Self.hasKeys)
      } catch {
        if isNew { folders.forgetDevice(of: address.store) }
        guard error == .rejected else { throw error }
        throw .accessDenied(reason: "this recovery code opens nothing of this store")
      }
    }
    try attempt { () throws(StoreError) in try folders.note(address) }
  }

  /// Forgets the keys of this device, which was removed or has only asked, and takes its request out of the store.
  ///
  /// - Throws: `Failure` where the device is a member, whose keys would be lost, or the cluster does not say whether it is one.
  package func withdraw() throws {
    guard folders.hasDevice(for: address.store) else { return }
    // The file of what was seen may be lost: without it a member looks like a device that has only asked.
    let present: [Line]
    do { present = try members() } catch let failure as Failure {
      let files = folders.files(of: address.store)
      throw Failure(
        address.text,
        "\(failure.reason). Nothing was forgotten. Where the store is gone for good, `rm \(files.device.quotedForShell) "
          + "\(files.seen.quotedForShell)` forgets its keys", failure.kind)
    }
    guard !present.contains(where: \.isThisDevice) else {
      throw Failure(
        address.text,
        "this device belongs to the store, so its keys are kept; `keyhole cluster remove`, on another device, takes it away first"
      )
    }
    if hasAsked {
      let (store, cluster) = try open()
      defer { cluster.close() }
      try attempt { () throws(StoreError) in try store.withdrawRequest() }
    }
    folders.forgetDevice(of: address.store)
  }

  private func open() throws -> (ClusterStore, EtcdCluster) {
    let cluster = address.cluster(login)
    let store = try attempt { () throws(StoreError) in
      do throws(StoreError) {
        return try ClusterStore(cluster, store: address.store, files: folders.files(of: address.store))
      } catch .notFound {
        throw .notPermitted(
          reason: "this device has no keys for this store; `keyhole cluster join` asks for that")
      }
    }
    return (store, cluster)
  }
}

// MARK: - Of a member

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
      let requests = try store.requests()
      guard !requests.isEmpty else { throw .notPermitted(reason: "no device asks to belong to this store") }
      for request in requests {
        // One that was forged, or made with another list of members, does not stand in the way of the others.
        do throws(StoreError) {
          let own = try store.code(of: request)
          try store.approve(request.device.id, code: code, passphrase)
          return (request.device.id.text, own)
        } catch .rejected {
          continue
        } catch .damaged {
          continue
        } catch .notFound {
          throw .notPermitted(reason: "another device has approved it, or it has withdrawn its request")
        }
      }
      throw .accessDenied(
        reason:
          "no request has this code: the device that shows it has asked another store, or its request was changed"
      )
    }
  }

  private static func check(_ store: ClusterStore, _ passphrase: borrowing SecretBytes) throws(StoreError) {
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

  /// A line for each server, and whether one of them answers. It takes five seconds at most.
  package func servers() -> [(line: String, answers: Bool)] {
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
        return (line, true)
      case .failure(let error): return ("\(endpoint.description)  does not answer: \(error.reason)", false)
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
