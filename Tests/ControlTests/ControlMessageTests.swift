import Glibc
import Model
import Platform
import StoreConformance
import TestSupport
import Testing

@testable import Control
@testable import Store

/// The bytes of the protocol.
@Suite(.timeLimit(.minutes(1))) struct ControlMessageTests {
  private static let item: Item = {
    var item = KeychainSamples.generic("a")
    item.label = "label"
    item.access = [.userPresence]
    item.attributes = ["comment": [1, 2, 3], "generic/x": []]
    item.programs = "ask *"
    item.otpauth = FurtherSecret(size: 5, modified: Timestamp(seconds: -1, nanoseconds: 2))
    return item
  }()

  private static let snapshot = ItemSnapshot(
    number: 7, [.init(ItemID(rawValue: "a"), item), .init(ItemID(rawValue: "b"), nil)])

  private static let state: KeychainState = {
    var state = KeychainState()
    (state.lock, state.needsPassphrase, state.readOnlyReason) = (.locked, false, "a reason")
    state.takesBatches = true
    state.retention = HistoryRetention(versions: 3, days: 4)
    state.host = "00000000-0000-0001-0000-000000000002"
    return state
  }()

  private static let stamp = SuiteStamp(
    device: 1, number: 2, size: 3, modified: Timestamp(seconds: 4, nanoseconds: 5),
    journal: JournalStamp(size: 6, modified: Timestamp(seconds: 7)))

  private static let edits = [
    SuiteEdit(
      key: "k",
      value: .array([
        .string("ä"), .integer(-1), .real(0.5), .bool(true), .date(SettingDate(seconds: 9)), .data([1]),
        .uid(7),
        .dictionary(["a": .array([])]),
      ]), modified: Timestamp(seconds: 1)),
    SuiteEdit(key: "gone", value: nil, modified: nil),
  ]

  private static let id = ItemID(rawValue: "0123-abc")

  static let waiting = waiting(for: .access(.readWrite))

  static func waiting(for purpose: ListedRequest.Purpose) -> WaitingRequest {
    WaitingRequest(
      ListedRequest(
        number: 7, paths: ["keychain/ä", "b"], purpose: purpose,
        caller: .init(process: .init(number: 9, start: 1), user: 0, executable: nil), reason: "no window",
        secondsLeft: 60))
  }

  static let samples: [ControlMessage] = [
    .fetchRequests, .deny(request: 7), .approve(request: .max, scope: .always),
    .requests([waiting, waiting(for: .unlock)]),
    .requests([]), .fetchStatus, .status("{}"), .catchUp(suites: ["a", "b/c"]),
    .askSuites(.list), .askSuites(.stamp("s")), .askSuites(.contents("s")), .askSuites(.create("s")),
    .askSuites(.remove("s")), .askSuites(.rename("s", to: "t")), .askSuites(.readOnlyReason("s")),
    .askSuites(.problems), .askSuites(.room), .askSuites(.layers),
    .askSuites(.history(.retention)), .askSuites(.history(.versions("s"))), .askSuites(.history(.suites)),
    .askSuites(.history(.purge("s", key: "k"))), .askSuites(.history(.purge("s", key: nil))),
    .askSuites(.history(.purgeBeforeRemoval("s", ["k", "l"]))), .askSuites(.history(.keepsVersions("s"))),
    .askSuites(.history(.endPurge("s", isFollowed: true))),
    .askSuites(.history(.setKeepsVersions("s", false))),
    .suites(.layers(["fleet/all", "host/x"], written: "host/x")), .askSuites(.origin("s", key: "k")),
    .askSuites(.isStale), .suites(.isStale(true)), .suites(.isStale(nil)),
    .suites(.origin("fleet/all")), .suites(.origin(nil)), .suites(.history(.retention(nil))),
    .suites(.history(.retention(.standard))), .suites(.history(.suites(["s"]))), .suites(.history(.count(3))),
    .suites(.history(.keeps(true))),
    .suites(
      .history(
        .versions([
          SettingVersion(
            number: 7, key: "k", value: .array([.integer(1)]), replaced: item.modified, changes: .removal)
        ]))),

    .askSuites(.change("s", from: stamp, edits)),
    .suites(.list([ListedSuite(name: "s", stamp: stamp)])), .suites(.stamp(stamp)), .suites(.stamp(nil)),
    .suites(.contents(nil)), .suites(.readOnly("why")), .suites(.readOnly(nil)),
    .suites(.contents(SuiteRecord(settings: edits, stamp: stamp, readOnly: nil))),
    .hello(version: 2, challenge: .max), .helloUnidentified(version: 2), .lock, .unlock, .fetchPath(id),
    .pauseReplay, .permit(id, .change, .value), .permit(id, .read, [.value, .otpauth]),
    .identify(starting: nil),
    .identify(starting: .init(path: "/usr/bin/psql", file: FileID(device: 1, inode: .max))),
    .permitRules(path: "keychain/ä"), .askToUnlock(path: "keychain/ä"), .watch, .fetchItems,
    .fetchSecret(id), .fetchOtpauth(id), .fetchCode(id), .code(.counter(.max)),
    .code(.step(since: Timestamp(seconds: 90), period: 30)), .permit(id, .read, .code),
    .rewriteOtpauth(id, readingSecret: true),
    .add(item), .update([id, id]), .rewrite(id, readingSecret: true), .remove([]), .changePassword(id),
    .fetchProblems, .fetchRoom, .fetchIsStale, .isStale(true), .isStale(nil),
    .changed([item]), .beginBatch(rewriting: [id, id]), .batchItem(item),
    .batchOtpauth(item.identity, modified: item.modified), .commitBatch, .finishBatches,
    .fetchVersions(item.identity), .fetchVersions(nil), .restore(id), .purge(item.identity), .purge(nil),
    .versions([ItemVersion(number: 7, item: item, replaced: item.modified, changes: [.value, .removal])]),
    .identities([item.identity]), .count(3),
    .pending, .failed(.notFound), .failed(.accessDenied(reason: "why")),
    .failed(.system(.EIO, operation: "read")), .failed(.tooLarge(limit: 9)), .done, .path("keychain/a"),
    .path(nil), .replayPaused, .secret, .stored(snapshot), .settled(snapshot),
    .problems([Problem(subject: "s", reason: "r", remedy: "m")]),
    .room(DiskRoom(blockSize: 1, blocks: 2, freeBlocks: 3, availableBlocks: 4)), .room(nil), .state(state),
    .someItems(snapshot), .allItems(snapshot), .itemsChanged(snapshot),
  ]

  @Test func samplesCoverEveryKind() {
    #expect(Set(Self.samples.map(\.kind)) == Set(ControlMessage.Kind.allCases))
  }

  @Test(arguments: samples.indices) func encodedAndDecodedIsTheSame(_ index: Int) throws {
    let message = Self.samples[index]
    #expect(try ControlMessage(message.kind, message.body) == message)
    let header = MessageHeader(message, bodyLength: 3, secretLength: 4, challenge: 5)
    #expect(header.bytes.count == MessageHeader.length)
    #expect(try MessageHeader(header.bytes, .any) == header)
  }

  /// Changed bytes decode to an error, or to a message that equals itself when it is encoded and decoded.
  @Test func mutatedBytesNeverTrap() throws {
    var random = SplitMix64(seed: 0x4B65_7968)
    var (decoded, refused) = (0, 0)
    for _ in 0..<40_000 {
      let sample = Self.samples[Int.random(in: Self.samples.indices, using: &random)]
      let body = Self.mutated(sample.body, &random)
      let kind =
        Int.random(in: 0..<8, using: &random) == 0
        ? ControlMessage.Kind.allCases.randomElement(using: &random) : nil
      do {
        let message = try ControlMessage(kind ?? sample.kind, body)
        #expect(try ControlMessage(message.kind, message.body) == message)
        decoded += 1
      } catch {
        refused += 1
      }
      _ = try? MessageHeader(Array(body.prefix(MessageHeader.length)), .any)
      _ = LineProtocol.answer(to: body)
    }
    #expect(decoded > 1_000 && refused > 1_000, "\(decoded) \(refused)")
  }

  private static func mutated(_ bytes: [UInt8], _ random: inout SplitMix64) -> [UInt8] {
    var bytes = bytes
    for _ in 0..<Int.random(in: 1...4, using: &random) {
      let place = Int.random(in: 0...bytes.count, using: &random)
      switch Int.random(in: 0..<5, using: &random) {
      case 0 where place < bytes.count: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      case 1 where place < bytes.count:
        bytes[place] = [0, 1, 0x7F, 0x80, 0xFF].randomElement(using: &random) ?? 0
      case 2: bytes.insert(UInt8.random(in: 0...255, using: &random), at: place)
      case 3: bytes.removeLast(bytes.count - place)
      default: bytes += bytes.suffix(place)
      }
    }
    return bytes
  }

  @Test func headersOverTheLimitAreRefused() throws {
    let header = MessageHeader(.add(Self.item), bodyLength: 300, secretLength: nil, challenge: 0)
    #expect(throws: StoreError.self) { try MessageHeader(header.bytes, .hello) }
    #expect(try MessageHeader(header.bytes, .request) == header)
    let secret = MessageHeader(.unlock, bodyLength: 0, secretLength: 3 << 20, challenge: 0)
    #expect(throws: StoreError.self) { try MessageHeader(secret.bytes, .any) }
  }

  /// No message begins with a small letter, as each request of version 1 does.
  @Test func kindsAreNoLetters() {
    #expect(ControlMessage.Kind.allCases.allSatisfy { !LineProtocol.isBeginning($0.rawValue) })
    // A mount's process of Keyhole 0.1 answers after a line feed.
    #expect(ControlMessage.hello(version: 2, challenge: 0).body.last == 0x0A)
  }
}
