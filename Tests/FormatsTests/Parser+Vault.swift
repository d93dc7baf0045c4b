import Model
import Testing

@testable import VaultRecords

/// The content of a vault's blobs: a program that has the keys may write anything.
enum VaultTarget {
  static func runRecord(_ bytes: [UInt8]) -> String {
    Parser.outcome {
      let record = try record(bytes)
      let encoded = record.encoded
      #expect(try self.record(encoded).encoded == encoded)
      _ = (record.item.created.iso8601, record.item.modified.iso8601)
      return "\(record.item.identity.itemClass) \(record.versions.isEmpty) \(record.furtherSecrets.isEmpty)"
    }
  }

  static func runManifest(_ bytes: [UInt8]) -> String {
    Parser.outcome {
      let manifest = try manifest(bytes)
      let encoded = manifest.encoded
      #expect(try self.manifest(encoded).encoded == encoded)
      var next = manifest
      _ = try next.advance()
      next.skip(.max)
      return "\(manifest.takesPassphrase) \(manifest.devices.isEmpty)"
    }
  }

  private static func record(_ bytes: [UInt8]) throws -> ItemRecord {
    try ItemRecord(bytes.span, id: ItemID(rawValue: "x"))
  }

  private static func manifest(_ bytes: [UInt8]) throws -> Manifest {
    try Manifest(bytes.span)
  }
}

enum VaultSamples {
  static let records: [[UInt8]] = [
    .generic(service: "s", account: "a"), .other(label: "l"),
    .internet(
      InternetIdentity(
        server: "s", account: "a", domain: "d", protocol: "https", authenticationType: "x", port: 1, path: "/"
      )),
  ].map { (identity: ItemIdentity) in
    let moment = Timestamp(seconds: 1_700_000_000, nanoseconds: 5)
    var item = Item(
      id: ItemID(rawValue: ""), identity: identity, label: "l", created: moment, modified: moment)
    (item.access, item.programs, item.keepsLineEnd) = ([.userPresence], "ask *", true)
    item.attributes = ["comment": [1], "x": []]
    return ItemRecord(
      item: item, secretRevision: 3, owner: .random(), versions: [1, 2],
      furtherSecrets: [
        ItemRecord.FurtherSecret(
          part: 1, revision: 4, size: 5, modified: Timestamp(seconds: 6, nanoseconds: 7))
      ]
    ).encoded
  }

  static let manifests: [[UInt8]] = {
    var manifest = Manifest()
    (manifest.generation, manifest.count) = (9, 3)
    manifest.slots = [UInt8](repeating: 1, count: 32)
    manifest.classKeys = manifest.slots
    manifest.pages = [UInt8](repeating: 2, count: 16)
    manifest.devices = [[1, 2, 3], [4]]
    return [manifest.encoded]
  }()
}
