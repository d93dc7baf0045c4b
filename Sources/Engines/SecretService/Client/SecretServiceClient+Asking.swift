import Model
import Store
import Synchronization

// Questions to the user in the service's own window.
extension SecretServiceClient {
  /// How long a person may take.
  private static let patienceForPeople = 60_000

  /// Has the service ask, and waits for the answer; nil: dismissed, or not answered in time.
  func ask(_ prompt: String) async throws(BusError) -> Variant? {
    guard let bus else { throw .gone(reason: "there is no connection to the session bus") }
    let deadline = Deadline(milliseconds: Self.patienceForPeople)
    let answers = AsyncStream<Variant>.makeStream()
    let end = answers.continuation
    let subscription = bus.subscribe(
      sender: ServiceName.bus, interface: ServiceName.prompt, member: "Completed", path: prompt
    ) { signal in
      end.yield(signal.arguments)
      end.finish()
    }
    let vanished = bus.subscribe(
      sender: "org.freedesktop.DBus", interface: "org.freedesktop.DBus", member: "NameOwnerChanged",
      firstArgument: ServiceName.bus
    ) { _ in end.finish() }
    defer {
      bus.unsubscribe(subscription)
      bus.unsubscribe(vanished)
    }
    _ = try await call(prompt, ServiceName.prompt, "Prompt", [Variant("")], before: deadline)
    loop.invoke(after: deadline.rest) { end.finish() }
    for await answer in answers.stream {
      guard answer[0]?.bool == false else { return nil }
      return answer[1]?.unboxed ?? Variant(tuple: [])
    }
    _ = try? await call(prompt, ServiceName.prompt, "Dismiss", before: Deadline(milliseconds: 1_000))
    return nil
  }

  /// Has every locked collection unlocked. - Throws: `accessDenied` where a person refused.
  func unlock(before deadline: Deadline) async throws(StoreError) {
    try await attempt(before: deadline) { keyring, _ throws(BusError) in
      let locked = try await keyring.lockedCollections(before: deadline)
      guard !locked.isEmpty else { return }
      let answer = try await keyring.call(
        ServiceName.path, ServiceName.service, "Unlock", [Variant(paths: locked)], before: deadline)
      keyring.hearLocks(of: answer[0], false)
      guard let prompt = answer[1]?.string, prompt != "/" else { return }
      guard let unlocked = try await keyring.ask(prompt) else {
        throw .refused(name: BusError.dismissed, message: "")
      }
      keyring.hearLocks(of: unlocked, false)
    }
  }

  /// The service's signals may come later than its answer.
  private func hearLocks(of paths: Variant?, _ isLocked: Bool) {
    for path in paths?.strings ?? [] where collections[path] != nil { hearLock(of: path, isLocked) }
    pump()
  }

  /// Has every collection locked.
  func lock(before deadline: Deadline) async throws(StoreError) {
    try await attempt(before: deadline) { keyring, _ throws(BusError) in
      let paths = try await keyring.property(
        ServiceName.path, ServiceName.service, "Collections", before: deadline)
      let lockable = (paths?.strings ?? []).filter { !$0.hasSuffix("/session") }
      let answer = try await keyring.call(
        ServiceName.path, ServiceName.service, "Lock", [Variant(paths: lockable)], before: deadline)
      keyring.hearLocks(of: answer[0], true)
    }
  }

  func hasCollection(before deadline: Deadline) async throws(StoreError) -> Bool {
    try await attempt(before: deadline) { keyring, _ throws(BusError) in
      let paths = try await keyring.property(
        ServiceName.path, ServiceName.service, "Collections", before: deadline)
      return (paths?.strings ?? []).contains { !$0.hasSuffix("/session") }
    }
  }

  /// Asks which collections are locked, where no item was read yet: until then the ledger takes the keychain for open.
  func learnLocks(before deadline: Deadline) async throws(StoreError) {
    guard loadedOwner == nil else { return }
    let (found, of) = try await attempt(before: deadline) { keyring, _ throws(BusError) in
      let asked = keyring.owner
      let paths = try await keyring.property(
        ServiceName.path, ServiceName.service, "Collections", before: deadline)
      var found: [String: Collection] = [:]
      for path in paths?.strings ?? [] {
        let isLocked = try await keyring.property(path, ServiceName.collection, "Locked", before: deadline)?
          .bool
        found[path] = Collection(label: "", isLocked: isLocked ?? false, isKnown: false)
      }
      return (found, asked)
    }
    guard loadedOwner == nil, of == owner else { return }
    // The signals that came meanwhile are newer.
    collections.merge(found) { told, _ in told }
  }

  /// Drops what `learnLocks` found: another service may have other collections.
  func forgetLocks() {
    if loadedOwner == nil, !collections.isEmpty { collections = [:] }
  }

  /// The labels of those that are locked, without the one that ends with the session.
  func lockedLabels(before deadline: Deadline) async throws(StoreError) -> [String] {
    try await attempt(before: deadline) { keyring, _ throws(BusError) in
      var labels: [String] = []
      for path in try await keyring.lockedCollections(before: deadline) where !path.hasSuffix("/session") {
        let label = try await keyring.property(path, ServiceName.collection, "Label", before: deadline)?
          .string
        let name = ItemID(rawValue: path + "/1").collectionName.string
        labels.append(label.flatMap { $0.isEmpty ? nil : $0 } ?? name)
      }
      return labels.sorted()
    }
  }

  /// The path of the collection with the alias `default`; nil: there is none.
  func defaultCollection(before deadline: Deadline) async throws(StoreError) -> String? {
    let answer = try await attempt(before: deadline) { keyring, _ throws(BusError) in
      try await keyring.call(
        ServiceName.path, ServiceName.service, "ReadAlias", [Variant("default")], before: deadline)
    }
    return answer[0]?.string.flatMap { $0 == "/" ? nil : $0 }
  }

  private func lockedCollections(before deadline: Deadline) async throws(BusError) -> [String] {
    let paths = try await property(ServiceName.path, ServiceName.service, "Collections", before: deadline)
    var locked: [String] = []
    for path in paths?.strings ?? [] {
      let isLocked = try await property(path, ServiceName.collection, "Locked", before: deadline)?.bool
      if isLocked == true { locked.append(path) }
    }
    return locked
  }
}

extension BusError {
  static let dismissed = "keyhole.Dismissed"
  /// The service has none, and makes none.
  static let noCollection = "keyhole.NoCollection"
}
