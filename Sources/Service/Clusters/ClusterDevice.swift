import Cluster
package import ClusterAccess
import ClusterRecords
import EtcdClient
import Model
import Platform
package import SecretMemory
import Store
package import VaultRecords

/// This device's part in a store of a cluster, for `keyhole cluster`: it makes stores, asks to belong to them, and lets others in.
///
/// It opens the cluster itself, as no mount need be there.
package struct ClusterDevice {
  package let address: ClusterAddress
  let login: EtcdLogin?
  let folders: ClusterFolders

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

  func attempt<Value: ~Copyable>(_ body: () throws(StoreError) -> Value) throws -> Value {
    do throws(StoreError) { return try body() } catch { throw Failure(address.text, error) }
  }

  /// The same of a member: where it succeeds, the next command uses this address too.
  func attemptAsMember<Value: ~Copyable>(_ body: () throws(StoreError) -> Value) throws -> Value {
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
    "this device has keys for a store of this name already; where it was removed, or the store was made once more, `keyhole cluster join --withdraw` forgets them, "
    + "or says how, and then it can ask again"

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

  func open() throws -> (ClusterStore, EtcdCluster) {
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
