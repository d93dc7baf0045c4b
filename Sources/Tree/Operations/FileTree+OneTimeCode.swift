public import Model
import OneTimeCodes
import SecretMemory
public import Store
import Synchronization

/// The properties of the code that was computed last, for the status of its file.
struct KnownCode: Sendable {
  /// The `otpauth:` URI that it was of.
  var uri: FurtherSecret
  var digits: Int
  var moment: OneTimeCode.Moment
}

// The file with an item's one-time code. It is there where the item has an `otpauth:` URI, and no directory lists it: a
// program that copies, packs or searches a tree would use up the codes of counters, and could not store what it has read.
extension FileTree {
  /// Most codes have so many digits and such a time step: what the status shows before the first code was computed.
  private static let usual = (digits: 6, period: Int64(30))

  /// The present one-time code of the item that `node` is of: its directory, or a file in it.
  ///
  /// - Throws: `notFound` for an item without an `otpauth:` URI; as `KeychainStore.oneTimeCode`.
  public func oneTimeCode(of node: Node, _ permit: Permit?) throws(StoreError) -> OneTimeCode {
    guard let item = try item(of: node), item.otpauth != nil else { throw .notFound }
    return try computedCode(of: item, permit)
  }

  private func computedCode(of item: Item, _ permit: Permit?) throws(StoreError) -> OneTimeCode {
    let code = try requireKeychain().oneTimeCode(of: item, permit, counting: !options.isReadOnly)
    let known = item.otpauth.map { KnownCode(uri: $0, digits: code.digits.count, moment: code.moment) }
    knownCodes.withLock { $0[item.id] = known }
    return code
  }

  func openCode(
    of place: ItemPlace, _ node: Node, _ mode: OpenMode, _ permit: Permit?
  ) throws(StoreError) -> Handle {
    guard !mode.contains(.write) else { throw .codeIsComputed }
    guard let item = try storedItem(place) else { throw .notFound }
    let code = try oneTimeCode(of: node, permit)
    var state = Handle.State()
    (state.permit, state.codeEnd) = (permit?.ofHandle, code.moment.end)
    state.draft = .untouched(.secret(code.takeDigits()))
    let handle = Handle(node, in: self, mode: mode, state: state)
    // A lock that came meanwhile may have missed the handle.
    guard try requireKeychain().engine.locking.isAccessible(item) else {
      handle.seal()
      throw .locked
    }
    do throws(StoreError) { try permit?.requireUnchangedCaller() } catch {
      handle.seal()
      throw error
    }
    return handle
  }

  /// It asks nothing, so the length and the time step are those of the last code, or the usual ones.
  func statusOfCode(_ place: ItemPlace) throws(StoreError) -> NodeStatus {
    guard stagedItem(place) == nil, let item = try storedItem(place), let uri = item.otpauth else {
      throw .notFound
    }
    let known = knownCodes.withLock { $0[item.id] }
    switch known?.moment {
    case .counter: return file(size: known?.digits ?? Self.usual.digits, modified: uri.modified)
    case .step(_, let period) where known?.uri == uri:
      return file(size: known?.digits ?? Self.usual.digits, modified: Self.step(period))
    default: return file(size: Self.usual.digits, modified: Self.step(Self.usual.period))
    }
  }

  private static func step(_ period: Int64) -> Timestamp {
    Timestamp(seconds: Timestamp.now.seconds / period * period)
  }
}

extension Handle {
  /// Whether the code's time step is over.
  var isEnded: Bool { state.withLock { $0.codeEnd }.map { $0 <= .now } ?? false }

  /// Has a program that reads from the beginning again read the present code.
  func renewCode() throws(StoreError) {
    guard !node.isRemoved else { return }
    try requireUnsealed()
    let code = try tree.oneTimeCode(of: node, state.withLock { $0.permit })
    let (end, content) = (code.moment.end, Content.secret(code.takeDigits()))
    state.withLock { state in
      guard !state.fate.isSealed else { return }
      (state.draft, state.codeEnd) = (.untouched(content), end)
    }
  }
}

extension StoreError {
  static let codeIsComputed = StoreError.accessDenied(
    reason: "a one-time code is computed; what it is computed from is written to `otpauth`")
}
