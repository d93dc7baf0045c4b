public import Model

extension KeychainStore {
  /// Whether an asker gets an item's secret, or may change what protects it to what `changed` says.
  ///
  /// `asker` is called only where it matters who asks.
  /// - Throws: `notFound`, `locked`, `accessDenied` for whom the rules keep out or who can't be told.
  public nonisolated func permission(
    for id: ItemID, path: @autoclosure () -> String, by asker: () -> Asker?
  ) throws(StoreError) -> Permission {
    try permission(for: found(id), path: path(), by: asker)
  }

  /// The same for an item as `read` gave it just now.
  public nonisolated func permission(
    for item: Item, path: @autoclosure () -> String, changingTo changed: Item? = nil, by asker: () -> Asker?
  ) throws(StoreError) -> Permission {
    guard engine.isAccessible(item) else {
      if engine.decidesAccess { throw .locked }
      gatekeeper?.note(
        changed == nil ? .open : .change, item.id, asker(), .locked, guarded: (try? isGuarded(item)) ?? true)
      throw .locked
    }
    return try permission(for: item, path(), changed, asker)
  }

  /// Whether an item that is not there yet needs a password before it can be stored.
  ///
  /// - Throws: `locked`, `invalidValue`, `accessDenied`.
  public nonisolated func permission(
    forNew item: Item, path: @autoclosure () -> String, by asker: () -> Asker?
  ) throws(StoreError) -> Permission {
    try checkRoom(for: item)
    var unprotected = item
    (unprotected.access, unprotected.programs) = ([], nil)
    // The folder's rules say who may open what is there.
    guard item.access.needsPassword else { return .given(Permit(item: item.id, password: nil)) }
    return try permission(for: unprotected, path(), item, asker)
  }

  /// The same for an item of which only the path is known, and that it is to have a password.
  public nonisolated func permission(
    forNewPasswordAt path: String, by asker: () -> Asker?
  ) throws(StoreError) -> Permission {
    let never = Timestamp(seconds: 0)
    let none = Item(id: ItemID(rawValue: ""), identity: .other(label: ""), created: never, modified: never)
    var protected = none
    protected.access = [.applicationPassword]
    return try permission(for: none, path, protected, asker)
  }

  private nonisolated func permission(
    for item: Item, _ path: @autoclosure () -> String, _ changed: Item?, _ asker: () -> Asker?
  ) throws(StoreError) -> Permission {
    if engine.decidesAccess { return .given(Permit(item: item.id, password: nil)) }
    let operation = changed == nil ? AccessEvent.Operation.open : .change
    let password = Self.password(item, changed ?? item)
    guard try isGuarded(item) || password != .none else {
      if operation == .open { gatekeeper?.note(.open, item.id, asker(), .allowed, guarded: false) }
      return .given(Permit(item: item.id, password: nil))
    }
    guard let gatekeeper else { throw .accessDenied(reason: "nobody can be asked here") }
    guard let asker = asker() else {
      gatekeeper.note(operation, item.id, nil, .impossible)
      throw .accessDenied(reason: "who asks is in another namespace, or can't be told")
    }
    let action = item.action(for: asker, inherited: try inheritedRules(of: item.identity))
    if action == .deny {
      gatekeeper.note(operation, item.id, asker, .denied)
      throw .accessDenied(reason: "the item's rules keep \(asker.program) out")
    }
    if action == .allow, password == .none {
      gatekeeper.note(operation, item.id, asker, .allowed)
      return .given(Permit(item: item.id, password: nil))
    }
    let demand = action == .ask ? item.demand ?? (password == .none ? .consent : nil) : nil
    let isPresent = password == .present
    return try gatekeeper.permission(
      PermissionRequest(item.id, path(), operation, asker, demand, password, gatekeeper) {
        [engine] (password) throws(StoreError) in
        // Another process checks its own.
        guard password.engine == nil else { return }
        guard isPresent else { return try engine.prepare(password) }
        try engine.check(password, of: item.id)
      })
  }

  private static func password(_ item: Item, _ target: Item) -> Question.Password {
    if item.access.needsPassword { return .present }
    return target.access.needsPassword ? .new : .none
  }
}

extension KeychainStore {
  /// The rules of the item's folder and of the keychain.
  ///
  /// - Throws: what reading the keychain throws: rules that can't be read are not none.
  nonisolated func inheritedRules(of identity: ItemIdentity) throws(StoreError) -> [ProgramRules.Rule] {
    try read { $0.inheritedRules(of: identity) }
  }

  /// Its secret is not given to everybody, and it is for the store to say to whom.
  nonisolated func isGuarded(_ item: Item) throws(StoreError) -> Bool {
    guard !engine.decidesAccess else { return false }
    guard item.access.isEmpty, item.programs == nil else { return true }
    return try !inheritedRules(of: item.identity).isEmpty
  }
}

extension Item {
  /// What the rules say of an asker, its own first; where none fits, everybody may ask, and without flags have it.
  func action(for asker: Asker, inherited: [ProgramRules.Rule]) -> ProgramRules.Action {
    let own = programs.map(ProgramRules.rules) ?? []
    return (own + inherited).action(for: asker) ?? (access.isEmpty ? .allow : .ask)
  }

  /// Whether the same has to be done before the secret is given.
  public func hasSameProtection(as other: Item) -> Bool {
    let enrolled = EnrolledFingers.attribute
    return access == other.access && programs == other.programs && accessibility == other.accessibility
      && isToBeSealed == other.isToBeSealed && attributes[enrolled] == other.attributes[enrolled]
  }
}

extension ProgramRules.Rule {
  /// A program is known by its file, whatever its name; of an interpreter also the script fits.
  func fits(_ asker: Asker) -> Bool {
    guard let path else { return true }
    guard let file = Asker.File(path.string) else { return false }
    if file == asker.programFile {
      return digest == nil || digest == asker.digestOfProgram()
    }
    guard let script = asker.script, Asker.File(script) == file else { return false }
    return digest == nil || digest == Asker.digest(ofFile: script)
  }
}
