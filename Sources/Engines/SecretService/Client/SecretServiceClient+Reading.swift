import Model
import Store

// How the ledger is filled.
extension SecretServiceClient {
  /// How long one question of many may take; all of a keyring of thousands take as long as they take, for
  /// gnome-keyring looks each of its items up among all others.
  static var patience: Deadline { Deadline(milliseconds: 8_000) }

  /// Reads everything for the first time, or waits until everything that was signalled is read.
  ///
  /// - Throws: `locked` where no collection was ever unlocked.
  func load(before deadline: Deadline) async throws(StoreError) {
    if loadedOwner == nil {
      let loading = loading ?? Task(executorPreference: loop) { await self.loadFirst(before: deadline) }
      self.loading = loading
      try await loading.value.get()
    } else {
      // The service answers in order: what it told before this is here by then.
      try await attempt(before: deadline) { keyring, _ throws(BusError) in
        _ = try await keyring.call(
          ServiceName.path, "org.freedesktop.DBus.Peer", "Ping", before: deadline)
      }
      // Not every one tells when it is not locked any more.
      dirty.collections.formUnion(collections.filter(\.value.isLocked).keys)
      pump()
      await pumping?.value
    }
    if ledger.lockState == .sealed { throw .locked }
  }

  /// One task for all callers that want it meanwhile.
  private func loadFirst(before deadline: Deadline) async -> Result<Void, StoreError> {
    defer { loading = nil }
    do throws(StoreError) {
      try await attempt(before: deadline) { keyring, session throws(BusError) in
        try await keyring.readEverything(session, before: deadline)
      }
      return .success(())
    } catch {
      return .failure(error)
    }
  }

  /// Looks whether collections that are believed to be locked still are, unless that is under way.
  func lookAgain(before deadline: Deadline) async {
    guard !isLookingAgain else { return }
    isLookingAgain = true
    defer { isLookingAgain = false }
    for path in collections.filter(\.value.isLocked).keys {
      let isLocked = try? await attempt(before: deadline) { keyring, _ throws(BusError) in
        try await keyring.property(path, ServiceName.collection, "Locked", before: deadline)?.bool
      }
      if isLocked == false { hearLock(of: path, false) }
    }
    pump()
  }

  /// Begins to read what is dirty, unless that is under way.
  func pump() {
    guard pumping == nil, !dirty.isEmpty else { return }
    pumping = Task(executorPreference: loop) { [weak self] in
      await self?.readDirty()
    }
  }

  private func readDirty() async {
    while !dirty.isEmpty {
      let work = dirty
      dirty = Dirty()
      let deadline = Self.patience
      do throws(StoreError) {
        try await attempt(before: deadline) { keyring, session throws(BusError) in
          try await keyring.read(work, session, before: deadline)
        }
      } catch {
        // When the service answers again, or another one comes, there is another try.
        dirty.merge(work)
        break
      }
      announce()
    }
    pumping = nil
  }

  private func read(
    _ work: Dirty, _ session: SecretSession, before deadline: Deadline
  ) async throws(BusError) {
    if work.everything { return try await readEverything(session, before: deadline) }
    for collection in work.collections { try await readCollection(collection, session) }
    try await read(Array(work.items), session, before: Self.patience)
  }

  private func readEverything(_ session: SecretSession, before deadline: Deadline) async throws(BusError) {
    let paths = try await property(ServiceName.path, ServiceName.service, "Collections", before: deadline)
    let present = Set(paths?.strings ?? [])
    for gone in collections.keys where !present.contains(gone) { dropCollection(gone) }
    for collection in present { try await readCollection(collection, session) }
    loadedOwner = owner
  }

  /// Reads a collection with all its items. Of a locked one that was never unlocked nothing is believed: its
  /// labels are empty and its attributes hashes.
  private func readCollection(_ collection: String, _ session: SecretSession) async throws(BusError) {
    let found = try await properties(of: collection, ServiceName.collection, before: Self.patience)
    guard let properties = found else { return dropCollection(collection) }
    let isLocked = properties["Locked"]?.bool ?? false
    let isKnown = !isLocked || collections[collection]?.isKnown == true
    collections[collection] = Collection(
      label: properties["Label"]?.string ?? "", isLocked: isLocked, isKnown: isKnown)
    let items = properties["Items"]?.strings ?? []
    let known = ledger.ids.filter { $0.collection == collection }
    guard !isLocked else {
      // Some list nothing while they are locked.
      return known.forEach { ledger.setLocked(true, $0) }
    }
    let present = Set(items)
    for id in known where !present.contains(id.rawValue) { _ = ledger.remove(id, origin: .external) }
    try await read(items, session, before: Self.patience)
  }

  /// nil: there is no such object any more.
  func properties(
    of path: String, _ interface: String, before deadline: Deadline
  ) async throws(BusError) -> Variant? {
    do throws(BusError) {
      return try await call(path, ServiceName.properties, "GetAll", [Variant(interface)], before: deadline)[0]
    } catch {
      guard error.isMissing else { throw error }
      return nil
    }
  }
}

extension SecretServiceClient.Dirty {
  fileprivate mutating func merge(_ other: Self) {
    everything = everything || other.everything
    collections.formUnion(other.collections)
    items.formUnion(other.items)
  }
}
