public import Model
public import Store
import Synchronization

extension FileTree {
  /// Makes a file, or opens the one that is there: open(2) with O_CREAT.
  ///
  /// A key or a value is stored by the handle's first commit, at the latest at its close.
  /// - Throws: `exists` with `exclusive`; `notPermitted` where no file can be; `invalidName`,
  ///   `nameTooLong`, `notUnicode`; `readOnly`; `notFound` where the directory is gone.
  public func create(
    _ name: some Collection<UInt8>, in directory: Node, _ mode: OpenMode, exclusive: Bool,
    by caller: Caller, _ permit: Permit? = nil
  ) throws(StoreError) -> Handle {
    let place = try newFile(name, in: directory.place)
    if try exists(place) {
      guard !exclusive else { throw .exists }
      return try open(node(at: place), mode, by: caller, permit)
    }
    try add(place)
    let node = node(at: place)
    if exclusive { node.state.withLock { $0.creator = caller.process } }
    // A new file begins empty whether or not O_TRUNC says so, and is stored even if nothing is written.
    return try open(node, mode.union([.write, .truncate]), by: caller, permit)
  }

  /// mknod(2) of a regular file: creates it at once. - Throws: as `create` with `exclusive`.
  public func makeFile(
    _ name: some Collection<UInt8>, in directory: Node, by caller: Caller
  ) throws(StoreError) -> Node {
    let handle = try create(name, in: directory, .write, exclusive: true, by: caller)
    defer { handle.close() }
    try handle.commitNow()
    return handle.node
  }

  /// symlink(2): only scratch can be one, as Emacs' locks are. - Throws: `notPermitted` elsewhere.
  public func makeLink(
    _ name: some Collection<UInt8>, to target: [UInt8], in directory: Node
  ) throws(StoreError) -> Node {
    guard case .scratch(let place) = try newFile(name, in: directory.place) else {
      throw .notPermitted(reason: "a value can't be a symbolic link")
    }
    let file = try ScratchFile(quota: quota(for: place), target: target)
    try overlay.withLock { overlay throws(StoreError) in
      guard overlay[place] == nil else { throw .exists }
      overlay[place] = file
    }
    return node(at: .scratch(place))
  }

  /// Where a symbolic link points to. - Throws: `invalidValue` for what is none.
  public func linkTarget(of node: Node) throws(StoreError) -> [UInt8] {
    guard case .scratch(let place) = node.place, let file = overlay.withLock({ $0[place] }),
      let target = file.state.withLock({ $0.target })
    else { throw .invalidValue(reason: "not a symbolic link") }
    return target
  }

  /// mkdir(2): makes a suite, a service or server directory, or stages an item.
  ///
  /// - Throws: `exists`; `notPermitted` where no directory can be; `invalidName`, `nameTooLong`,
  ///   `notUnicode`; `readOnly`, `noSpace`.
  public func makeDirectory(
    _ name: some Collection<UInt8>, in directory: Node
  ) throws(StoreError) -> Node {
    let place = try newDirectory(name, in: directory.place)
    guard try !exists(place) else { throw .exists }
    switch place {
    case .suite(let name): try settings.createSuite(name)
    case .folder(let folder): _ = overlay.withLock { $0.stagedFolders.insert(folder) }
    case .item(let item): try stage(item)
    default: throw .noFolderHere
    }
    return node(at: place)
  }

  /// The scratch, key or value that `name` would be in `directory`.
  func newFile(
    _ name: some Collection<UInt8>, in directory: Place
  ) throws(StoreError) -> Place {
    guard try exists(directory) else { throw .notFound }
    switch directory {
    case .suite(let suite):
      return try newFile(name, inSuite: suite)
    case .item(let item):
      if let secret = Place(secretOf: item, named: name) { return secret }
      guard !name.elementsEqual(ItemSecrets.codeName.utf8) else {
        throw .notPermitted(reason: "`otp` is computed from `otpauth`, which can be written")
      }
      return .scratch(ScratchPlace(directory: .item(item), name: try scratchName(name)))
    case .view(.folder(let folder)):
      return try newViewFile(name, in: folder)
    default:
      throw .notPermitted(reason: "files can be made in suites, items and `templates` only")
    }
  }

  private func newFile(
    _ name: some Collection<UInt8>, inSuite suite: ExactString
  ) throws(StoreError) -> Place {
    if let scratch = existingScratch(name, in: .suite(suite)) { return .scratch(scratch) }
    if let key = try storedKey(name, inSuite: suite) { return .key(KeyPlace(suite: suite, key: key)) }
    guard ScratchName.isScratchInSuite(name) else {
      guard let key = try PathName(creating: name).plain else {
        throw .invalidName(reason: "`%~` marks names that are cut; it can't begin a new one")
      }
      return .key(KeyPlace(suite: suite, key: key))
    }
    return .scratch(ScratchPlace(directory: .suite(suite), name: try scratchName(name)))
  }

  /// The stored key of a name that no new key could have: that of scratch, or a cut one.
  private func storedKey(
    _ name: some Collection<UInt8>, inSuite suite: ExactString
  ) throws(StoreError) -> ExactString? {
    guard let name = try? PathName(lookingUp: name) else { return nil }
    guard name.hasDigest || ScratchName.isScratchInSuite(name.string.utf8) else { return nil }
    return try settings.suite(suite).fetch()?.entries.keys.first { PathName($0) == name }
  }

  func scratchName(_ name: some Collection<UInt8>) throws(StoreError) -> ExactString {
    guard name.count <= 255 else { throw .nameTooLong }
    guard let name = ExactString(utf8: name) else { throw .notUnicode }
    return name
  }

  func newDirectory(
    _ name: some Collection<UInt8>, in directory: Place
  ) throws(StoreError) -> Place {
    switch directory {
    case .defaults:
      guard let plain = try PathName(creating: name).plain, !plain.isEmpty, !plain.utf8.contains(0x2F)
      else { throw .invalidName(reason: "a suite is a file, so its name can't be empty or hold `/`") }
      return .suite(plain)
    case .itemClass(let itemClass) where itemClass != .other:
      return .folder(FolderPlace(itemClass: itemClass, name: try PathName(creating: name)))
    case .folder(let folder):
      let level = ItemFolderName.leafLevel(of: folder.itemClass)
      let place = ItemPlace(folder: folder, name: try PathName(creating: name, level: level))
      guard place.identity != nil else {
        throw .invalidName(reason: "not an account, with `;domain=` `;protocol=` `;auth=` `;port=` `;path=`")
      }
      return .item(place)
    default:
      _ = try PathName(creating: name)
      throw .noFolderHere
    }
  }

  private func add(_ place: Place) throws(StoreError) {
    switch place {
    case .scratch(let scratch):
      let file = try ScratchFile(quota: quota(for: scratch))
      overlay.withLock { $0[scratch] = file }
    case .key(let key):
      try settings.suite(key.suite).requireWritable()
      overlay.withLock { $0.pending[place] = PendingFile(created: .now) }
    case .value(let item), .otpauth(let item):
      let keychain = try requireKeychain()
      try keychain.requireWritable()
      if place == .otpauth(item) { try requireOtpauth() }
      try keychain.checkRoom(for: anyItem(item))
      overlay.withLock { $0.pending[place] = PendingFile(created: .now) }
    case .view(.file):
      // Of a view, where an editor has set the present file aside.
      try requireKeychain().requireWritable()
      overlay.withLock { $0.pending[place] = PendingFile(created: .now) }
    default:
      throw .notPermitted(reason: "no file can be made here")
    }
  }

  func stage(_ place: ItemPlace) throws(StoreError) {
    guard let identity = place.identity else { throw .invalidName(reason: "not an item's name") }
    let item = Item(id: ItemID(rawValue: ""), identity: identity, created: .now, modified: .now)
    overlay.withLock { $0.stagedItems[place] = StagedItem(item: item) }
  }

  func quota(for place: ScratchPlace) -> ScratchQuota {
    place.directory.isSecret ? secretScratch : settingScratch
  }
}

extension StoreError {
  fileprivate static let noFolderHere = StoreError.notPermitted(
    reason:
      "folders stand for suites, services and accounts: defaults/SUITE, keychain/generic/SERVICE/ACCOUNT")
}
