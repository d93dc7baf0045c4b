import InMemory
import Model
import Platform
import SecretMemory
import Store
import Suites
import Testing
import Tree

@testable import Control
@testable import LoginSessions
@testable import Platform

/// The control socket: the 20 bytes of a header, and a body.
enum ControlTarget {
  static func run(_ bytes: [UInt8]) -> String {
    _ = LineProtocol.answer(to: bytes)
    return Parser.outcome {
      let header = try MessageHeader(Array(bytes.prefix(MessageHeader.length)), .any)
      // Of any length, so that a mutation need not mend the header.
      let message = try ControlMessage(header.kind, Array(bytes.dropFirst(MessageHeader.length)))
      if header.kind != .hello, header.kind != .helloUnidentified {
        #expect(try ControlMessage(header.kind, message.body) == message)
      }
      try use(message)
      return "\(header.kind)"
    }
  }

  /// The effect of the other side on an item of a message.
  private static func use(_ message: ControlMessage) throws {
    switch message {
    case .add(let item), .batchItem(let item):
      show(item)
      let store = KeychainStore(engine: MemoryKeychain())
      _ = try store.add(item, secret: SecretBytes())
    case .changed(let items): items.forEach(show)
    case .stored(let snapshot), .someItems(let snapshot): snapshot.items.forEach(show)
    default: break
    }
  }

  private static func show(_ item: Item) {
    for name in ItemAttributes.names(of: item) { _ = try? ItemAttributes.value(name, of: item) }
    _ = (item.created.iso8601, item.modified.iso8601)
  }
}

enum ControlSamples {
  private static let item: Item = {
    let identity = InternetIdentity(server: "example.org", account: "é", port: 443)
    var item = Item(
      id: ItemID(rawValue: "0123-abc"), identity: .internet(identity), label: "label",
      created: Timestamp(seconds: 1_700_000_000), modified: Timestamp(seconds: 0))
    (item.access, item.programs, item.attributes) = (
      [.userPresence], "ask *", ["comment": [1, 2, 3], "x": []]
    )
    return item
  }()

  private static let snapshot = ItemSnapshot(
    number: 7, [.init(item.id, item), .init(ItemID(rawValue: "b"), nil)])

  static let messages: [[UInt8]] = [
    .hello(version: 2, challenge: .max), .helloUnidentified(version: 2), .lock, .fetchPath(item.id),
    .permit(item.id, .change, .value), .permitRules(path: "keychain/ä"), .askToUnlock(path: "keychain/ä"),
    .add(item),
    .approve(request: 7, scope: .session), .deny(request: 7),
    .update([item.id, item.id]), .fetchOtpauth(item.id), .rewriteOtpauth(item.id, readingSecret: true),
    .rewrite(item.id, readingSecret: true), .changed([item]), .beginBatch(rewriting: [item.id]),
    .batchItem(item), .batchOtpauth(item.identity, modified: item.modified),
    .versions([ItemVersion(number: 7, item: item, replaced: item.modified, changes: .value)]),
    .identities([item.identity]), .fetchVersions(item.identity),
    .failed(.system(.EIO, operation: "read")),
    .failed(.tooLarge(limit: 9)), .path("keychain/a"), .stored(snapshot), .someItems(snapshot),
    .problems([Problem(subject: "s", reason: "r", remedy: "m")]),
    .room(DiskRoom(blockSize: 1, blocks: 2, freeBlocks: 3, availableBlocks: 4)), .state(KeychainState()),
  ].map { (message: ControlMessage) in
    let body = message.body
    return MessageHeader(message, bodyLength: body.count, secretLength: nil, challenge: 5).bytes + body
  }
}

/// A stream of messages of D-Bus.
enum BusTarget {
  static func run(_ bytes: [UInt8]) -> String {
    var rest = bytes[...]
    var outcome = ""
    while let length = BusMessage.length(of: Array(rest)), length <= rest.count {
      let message = BusMessage(Array(rest.prefix(length)))
      let kind = message.kind.map { "\($0)" } ?? "none"
      outcome +=
        "\(kind) \(message.number != nil) \(message.texts.count) \(message.variantText != nil) \(message.sessions.isEmpty) "
      rest = rest.dropFirst(length)
    }
    return outcome
  }
}

enum ProcessTarget {
  static func run(_ bytes: [UInt8]) -> String {
    guard let stat = ProcessFiles.Stat(bytes) else { return "none" }
    return "\(stat.parent != nil) \(stat.start != nil) \(stat.terminal == 0) \(stat.exitCode == 0)"
  }
}

/// An attribute's name, a line feed, and its value; set on an item, a key and a folder, and read again.
enum AttributeTarget {
  static func run(_ bytes: [UInt8]) -> String {
    let end = bytes.firstIndex(of: 0x0A) ?? bytes.endIndex
    let name = String(decoding: bytes[..<end], as: UTF8.self)
    let value = Array(bytes[end...].dropFirst())
    return Parser.outcome {
      let suites = MemorySuites(propertyLists: PropertyLists())
      suites.replace("s", with: ["k": .string("text")])
      let items = MemoryKeychain()
      for identity in identities { _ = try items.add(item(identity), secret: SecretBytes()) }
      let tree = FileTree(settings: SettingsStore(engine: suites), keychain: KeychainStore(engine: items))
      return try paths.map { set(name, value, on: try node($0, tree), tree) }.joined(separator: " ")
    }
  }

  private static let identities: [ItemIdentity] = [
    .generic(service: "a", account: "b"),
    .internet(InternetIdentity(server: "a", account: "b", domain: "d", port: 1)), .other(label: "a"),
  ]

  private static let paths = [
    "keychain/generic/a/b", "keychain/other/a", "keychain/generic", "defaults/s", "defaults/s/k",
  ]

  private static func item(_ identity: ItemIdentity) -> Item {
    let moment = Timestamp(seconds: 1_700_000_000)
    return Item(id: ItemID(rawValue: ""), identity: identity, created: moment, modified: moment)
  }

  private static func node(_ path: String, _ tree: FileTree) throws -> Node {
    try path.split(separator: "/").reduce(tree.root) { try tree.child(of: $0, named: $1.utf8) }
  }

  private static func set(_ name: String, _ value: [UInt8], on node: Node, _ tree: FileTree) -> String {
    Parser.outcome {
      try tree.setAttribute(name, to: value, of: node, if: .always, by: .current)
      let names = try tree.attributeNames(of: node)
      for name in names { _ = try tree.attribute(name, of: node) }
      try tree.removeAttribute(name, of: node)
      return "set"
    }
  }
}
