public import Model
import Platform

// Each gives the permission for one operation of one caller; the caller is looked at only where the item is guarded, or
// the record takes the access.
extension KeychainStore {
  /// - Throws: `notFound`, `locked`, `accessDenied` for a caller that the rules keep out.
  public nonisolated func permission(
    for id: ItemID, to operation: AccessOperation, _ secrets: ItemSecrets = .value,
    path: @autoclosure () -> String, by caller: Caller
  ) throws(StoreError) -> Permission {
    try permission(for: found(id), to: operation, secrets, path: path(), by: caller)
  }

  /// The same for an item as `read` gave it just now. `view`: the view through which it is opened, for the record.
  public nonisolated func permission(
    for item: Item, to operation: AccessOperation, _ secrets: ItemSecrets = .value,
    path: @autoclosure () -> String, through view: SealedDocument? = nil, by caller: Caller
  ) throws(StoreError) -> Permission {
    try requireAccessible(item, operation, secrets, caller, view)
    let password: Question.Password = item.access.needsPassword ? .present : .none
    return try decide(item, nil, operation, secrets, password, path, caller, view)
  }

  /// Before an item's protection, or its place among folders with rules, becomes that of `changed`.
  ///
  /// A person is asked about a guarded item, whatever its rules say: they name programs that may use the secret, not that
  /// may change its protection.
  /// - Throws: `locked`, `accessDenied` where no person can be asked.
  public nonisolated func permission(
    for item: Item, changingTo changed: Item, path: @autoclosure () -> String, by caller: Caller
  ) throws(StoreError) -> Permission {
    try requireAccessible(item, .change, .value, caller)
    return try decide(item, changed, .change, .value, Self.password(item, changed), path, caller)
  }

  /// Before a new item is stored: whether it needs a password chosen for it.
  ///
  /// - Throws: `locked`, `invalidValue`, `accessDenied`.
  public nonisolated func permission(
    forNew item: Item, path: @autoclosure () -> String, by caller: Caller
  ) throws(StoreError) -> Permission {
    try checkRoom(for: item)
    // The folder's rules name the programs that may open what is there, not those that may add to it.
    guard item.access.needsPassword else { return .given(Permit(item: item.id, for: .write)) }
    return try permissionToChoosePassword(for: item, path(), caller)
  }

  /// Before a password of its own is chosen for an item that is there, or for one of which only the path is known.
  public nonisolated func permission(
    forNewPasswordAt path: String, by caller: Caller
  ) throws(StoreError) -> Permission {
    let never = Timestamp(seconds: 0)
    let none = Item(id: ItemID(rawValue: ""), identity: .other(label: ""), created: never, modified: never)
    try requireAccessible(none, .change, .value, caller)
    return try permissionToChoosePassword(for: none, path, caller)
  }

  /// Whether the item's secret is given to a caller only after a question, or not at all. It records nothing.
  ///
  /// - Throws: what reading the keychain throws.
  public nonisolated func isRestricted(_ item: Item, for caller: Caller.Identity) throws(StoreError) -> Bool {
    if isDecidedElsewhere { return false }
    if item.access.needsPassword { return true }
    guard try isGuarded(item) else { return false }
    return try action(of: item, .read, caller) != .allow
  }

  private nonisolated func permissionToChoosePassword(
    for item: Item, _ path: String, _ caller: Caller
  ) throws(StoreError) -> Permission {
    if isDecidedElsewhere { return .given(Permit(item: item.id, for: .change)) }
    let controller = try requireController()
    let subject = PermissionRequest.Subject(
      item: item.id, path: path, operation: .change, caller: caller.identity(), demand: nil, password: .new,
      outlastsLock: item.accessibility.survivesLock)
    return try controller.permission(
      PermissionRequest(subject, controller) { [engine] (password) throws(StoreError) in
        // Another process checks its own.
        guard password.engine == nil else { return }
        try engine.passwords?.prepare(password)
      })
  }

  nonisolated func requireController() throws(StoreError) -> AccessController {
    guard let controller else {
      throw .accessDenied(reason: "a person has to agree, and this process can't ask one")
    }
    return controller
  }

  private nonisolated func requireAccessible(
    _ item: Item, _ operation: AccessOperation, _ secrets: ItemSecrets, _ caller: Caller,
    _ view: SealedDocument? = nil
  ) throws(StoreError) {
    guard try !isAccessible(item) else { return }
    if !isDecidedElsewhere {
      controller?.note(
        operation, item.id, secrets, caller.identity(), .locked, guarded: (try? isGuarded(item)) ?? true,
        view: view?.id)
    }
    throw .locked
  }

  private nonisolated func decide(
    _ item: Item, _ changed: Item?, _ operation: AccessOperation, _ secrets: ItemSecrets,
    _ password: Question.Password,
    _ path: () -> String, _ caller: Caller, _ view: SealedDocument? = nil
  ) throws(StoreError) -> Permission {
    if isDecidedElsewhere { return .given(Permit(item: item.id, for: operation, secrets)) }
    guard try isGuarded(item) || password != .none else {
      if operation != .change {
        controller?.note(
          operation, item.id, secrets, caller.identity(), .allowed, guarded: false, view: view?.id)
      }
      return .given(Permit(item: item.id, for: operation, secrets))
    }
    let controller = try requireController()
    if password == .none, let permit = try permitByRule(item, operation, secrets, caller, view, controller) {
      return .given(permit)
    }
    let identity = caller.identity()
    var subject = PermissionRequest.Subject(
      item: item.id, path: path(), view: view?.id, secrets: secrets, operation: operation, caller: identity,
      demand: nil, password: password, outlastsLock: item.accessibility.survivesLock)
    let action = try action(of: item, operation, identity)
    guard action != .deny else {
      controller.note(operation, item.id, secrets, identity, .denied, view: view?.id)
      // Of a view a reader does not see which of its items it is.
      let rules = view == nil ? "the item's rules" : "the rules of \(path())"
      throw .accessDenied(reason: "\(rules) keep \(identity.programName) out")
    }
    if action == .ask { subject.demand = try demand(of: item, operation, password) }
    guard subject.demand != nil || password != .none else {
      controller.note(operation, item.id, secrets, identity, .allowed, view: view?.id)
      caller.keepForRules(identity)
      return .given(subject.permit())
    }
    if operation == .change { subject.change = changed.map(item.change(to:)) ?? .unknown }
    try requireNoBrowser(subject, action, controller)
    subject.offeredRule = try offeredRule(for: subject, item)
    let isPresent = password == .present
    return try controller.permission(
      PermissionRequest(
        subject, controller,
        check: { [engine] (password) throws(StoreError) in
          // Another process checks its own.
          guard password.engine == nil else { return }
          guard isPresent else { return try engine.passwords?.prepare(password) ?? () }
          try engine.requirePasswords().check(password, of: item.id)
        }, writeRule: ruleWriter(for: subject)))
  }

  /// The permit of a process that a rule has let in lately; nil: it has not, or no rule lets it in now.
  private nonisolated func permitByRule(
    _ item: Item, _ operation: AccessOperation, _ secrets: ItemSecrets, _ caller: Caller,
    _ view: SealedDocument?, _ controller: AccessController
  ) throws(StoreError) -> Permit? {
    guard operation != .change, let identity = caller.identityForRules(),
      try action(of: item, operation, identity) == .allow
    else { return nil }
    controller.note(operation, item.id, secrets, identity, .allowed, view: view?.id)
    return Permit(item: item.id, for: operation, secrets, toWaiting: identity)
  }

  /// The rule for the caller's program that the person may choose; nil: the program has no path, or nothing can be stored.
  private nonisolated func offeredRule(
    for subject: PermissionRequest.Subject, _ item: Item
  ) throws(StoreError) -> OfferedRule? {
    guard subject.offersRule, engine.readOnlyReason == nil, let program = subject.caller.ruleProgram,
      // A path with a line feed can stand in none.
      ProgramRules.text(nil, adding: .allow, for: program) != nil
    else { return nil }
    // A question that takes a yes asks for less than a change of rules does.
    let demand = try demand(of: item, .change, .none)
    guard subject.demand != nil, subject.demand != demand, demand != .consent else {
      return OfferedRule(program: program, demand: nil)
    }
    return OfferedRule(program: program, demand: demand)
  }

  private nonisolated func ruleWriter(
    for subject: PermissionRequest.Subject
  ) -> (@Sendable (ProgramRules.Action) throws(StoreError) -> Void)? {
    guard let program = subject.offeredRule?.program else { return nil }
    return { [weak self] (action) throws(StoreError) in
      try self?.addRule(action, for: program, to: subject.item)
    }
  }

  /// Writes a rule for a program before the other rules of an item, as a person has chosen.
  private nonisolated func addRule(
    _ action: ProgramRules.Action, for program: ExactString, to item: ItemID
  ) throws(StoreError) {
    try update([item], Permit(item: item, for: .change)) { (item) throws(StoreError) in
      let host = engine.host.map(ProgramRules.Host.device)
      guard let rules = ProgramRules.text(item.programs, adding: action, for: program, on: host) else {
        throw .invalidValue(reason: "the item's rules for programs can't be read")
      }
      item.programs = rules
    }
  }

  /// A program that opens files by itself causes no question; it may be allowed by a rule.
  ///
  /// - Throws: `accessDenied`.
  private nonisolated func requireNoBrowser(
    _ subject: PermissionRequest.Subject, _ action: ProgramRules.Action, _ controller: AccessController
  ) throws(StoreError) {
    guard action == .ask, subject.operation == .read || subject.operation == .readWrite,
      controller.options.browsers.contains(subject.caller)
    else { return }
    controller.note(
      subject.operation, subject.item, subject.secrets, subject.caller, .browsing, view: subject.view)
    throw .accessDenied(
      reason: "\(subject.caller.programName) is listed as a program that opens files by itself; "
        + "`keyhole allow \(subject.caller.programName.quotedForShell) \(subject.path.quotedForShell)` "
        + "lets it in")
  }

  /// The decision of the rules on the caller; a change of a guarded item always causes a question.
  private nonisolated func action(
    of item: Item, _ operation: AccessOperation, _ caller: Caller.Identity
  ) throws(StoreError) -> ProgramRules.Action {
    if operation == .change { return try isGuarded(item) ? .ask : .allow }
    let actions = try protecting(item).map { (item) throws(StoreError) in
      item.action(for: caller, on: engine.host, inherited: try inheritedRules(of: item.identity))
    }
    return actions.contains(.deny) ? .deny : actions.contains(.ask) ? .ask : .allow
  }

  /// The demand on the user; nil: only the password, or nothing.
  private nonisolated func demand(
    of item: Item, _ operation: AccessOperation, _ password: Question.Password
  ) throws(StoreError) -> Demand? {
    var demands: [Demand] = []
    let protecting = try protecting(item)
    let isButton = operation != .change && controller?.options.presenceByButton == true
    let wanted = protecting.compactMap { isButton ? $0.demandByButton : $0.demand }
    for demand in wanted where !demands.contains(demand) {
      demands.append(demand)
    }
    if demands.count > 1 { return .all(demands) }
    if let demand = demands.first { return demand }
    if operation == .change { return consentToChange(sealed: item.isToBeSealed, password) }
    // The password is the agreement.
    return item.access.needsPassword ? nil : .consent
  }

  /// Without flags, protection is changed with the keychain's passphrase where it has one.
  nonisolated func consentToChange(sealed: Bool, _ password: Question.Password = .none) -> Demand? {
    if password == .present { return nil }
    return engine.locking.hasPasscode(sealed: sealed) ? .passcode : .consent
  }

  private static func password(_ item: Item, _ target: Item) -> Question.Password {
    if item.access.needsPassword { return .present }
    return target.access.needsPassword ? .new : .none
  }
}

extension KeychainStore {
  /// The rules of the item's folder and of the keychain.
  nonisolated func inheritedRules(of identity: ItemIdentity) throws(StoreError) -> [ProgramRules.Rule] {
    // A document holds no secret: what it refers to is guarded.
    identity.isDocument ? [] : try folderRules().inherited(by: identity)
  }

  /// Whether `item`, which `before` is to become, is as well protected: by the same flags and rules, its folder's included.
  public nonisolated func keepsProtection(of before: Item, in item: Item) throws(StoreError) -> Bool {
    try folderRules().keepProtection(of: before, in: item)
  }

  /// Whether programs that no rule names are asked about only because other programs are allowed. Keyhole 0.1 let them in.
  public nonisolated func asksByListOfAllowed(_ item: Item) throws(StoreError) -> Bool {
    guard item.access.isEmpty else { return false }
    let rules = item.rules(inherited: try inheritedRules(of: item.identity))
    return rules.contains(where: \.isAllowing)
      && !rules.contains { $0.subject == .every && $0.action(on: engine.host) != nil }
  }

  /// Whether the item has access flags or rules, and this store decides about them.
  nonisolated func isGuarded(_ item: Item) throws(StoreError) -> Bool {
    guard !isDecidedElsewhere else { return false }
    return try hasConditions(item)
  }

  /// Whether the secret may be refused to some program: by the lock, flags or rules, whichever process decides about them.
  ///
  /// - Throws: what reading the keychain throws.
  public nonisolated func mayRefuse(_ item: Item) throws(StoreError) -> Bool {
    guard try isAccessible(item) else { return true }
    return try hasConditions(item)
  }

  private nonisolated func hasConditions(_ item: Item) throws(StoreError) -> Bool {
    for item in try protecting(item) {
      guard item.access.isEmpty, item.programs == nil else { return true }
      if try !inheritedRules(of: item.identity).isEmpty { return true }
    }
    return false
  }

  /// Whether the lock lets an item be opened; of a version, both what it was and what it is.
  nonisolated func isAccessible(_ item: Item) throws(StoreError) -> Bool {
    try protecting(item).allSatisfy(engine.locking.isAccessible)
  }
}
