import Model
import Platform
import Store

// How items are read.
extension SecretServiceClient {
  /// How many questions are on the way at once: dbus-daemon itself allows 128, if its configuration says nothing.
  private static let window = 64
  /// How many secrets come in one answer: at 1 MiB each it stays below the 128 MiB that GLib takes.
  private static let batch = 64

  /// Reads items with the lengths of their secrets, many at a time.
  func read(
    _ items: [String], _ session: SecretSession, before deadline: Deadline
  ) async throws(BusError) {
    for start in stride(from: 0, to: items.count, by: Self.window) {
      let paths = Array(items[start..<min(items.count, start + Self.window)])
      let deadline = start == 0 ? deadline : Self.patience
      let generations = paths.map { ledger[ItemID(rawValue: $0)]?.generation }
      let found = try await properties(of: paths, before: deadline)
      let unlocked = found.filter { $0.value["Locked"]?.bool != true }.map(\.key)
      let secrets = try await measures(of: unlocked, session, before: deadline)
      for (path, generation) in zip(paths, generations) {
        // Items that this engine has changed meanwhile may be newer than those that were read.
        if locks.isHeld(path) {
          postponed.insert(path)
        } else if ledger[ItemID(rawValue: path)]?.generation != generation {
          dirty.items.insert(path)
        } else {
          take(path, found[path], secrets[path])
        }
      }
    }
  }

  private func properties(
    of paths: [String], before deadline: Deadline
  ) async throws(BusError) -> [String: Variant] {
    let answers = await withTaskGroup(of: (String, Result<Variant?, BusError>).self) { group in
      for path in paths { group.addTask { await (path, self.answer(path, before: deadline)) } }
      var answers: [(String, Result<Variant?, BusError>)] = []
      for await answer in group { answers.append(answer) }
      return answers
    }
    var found: [String: Variant] = [:]
    for (path, answer) in answers { found[path] = try answer.get() }
    return found
  }

  private func answer(_ path: String, before deadline: Deadline) async -> Result<Variant?, BusError> {
    do throws(BusError) {
      return .success(try await properties(of: path, ServiceName.item, before: deadline))
    } catch {
      return .failure(error)
    }
  }

  /// The facts that are kept of a secret; it can't be recovered from them.
  struct Measure: Sendable {
    var size: Int
    var digest: Int
    var contentType: String

    init(_ bytes: Span<UInt8>, _ contentType: String) {
      size = bytes.count
      var hasher = Hasher()
      hasher.combine(bytes: bytes)
      digest = hasher.finalize()
      self.contentType = contentType
    }
  }

  /// Learns the lengths of secrets. One that is locked, or gone, is left out.
  private func measures(
    of paths: [String], _ session: SecretSession, before deadline: Deadline
  ) async throws(BusError) -> [String: Measure] {
    var measures: [String: Measure] = [:]
    for start in stride(from: 0, to: paths.count, by: Self.batch) {
      let part = Array(paths[start..<min(paths.count, start + Self.batch)])
      let answer = try await call(
        ServiceName.path, ServiceName.service, "GetSecrets",
        [Variant(paths: part), Variant(path: session.path)], before: deadline)
      for entry in answer[0]?.children ?? [] {
        guard let path = entry[0]?.string, let secret = entry[1] else { continue }
        measures[path] = session.decode(secret) { Measure($0, $1) }
      }
    }
    return measures
  }

  /// Takes over what was read of one item.
  private func take(_ path: String, _ properties: Variant?, _ measure: Measure?) {
    let id = ItemID(rawValue: path)
    guard let properties else {
      _ = ledger.remove(id, origin: .external)
      return
    }
    let old = ledger[id]
    let isLocked = properties["Locked"]?.bool ?? false
    guard !isLocked else { return ledger.setLocked(true, id) }
    // Without its secret's length an item can't be shown.
    guard measure != nil || old != nil else { return }
    _ = ledger.put(record(id, properties, measure, isNews: loadedOwner != nil), origin: .external)
  }

  /// An item as it is now. Its time is that of its value's last change, to the nanosecond where that was seen.
  func record(_ id: ItemID, _ properties: Variant, _ measure: Measure?, isNews: Bool) -> ItemCache.Record {
    let old = ledger[id]
    let found = ServiceItem(properties)
    var item = found.withoutEmptyFields(id).item(id)
    let touched = properties["Modified"]?.number ?? 0
    item.created = Timestamp(seconds: Int64(clamping: properties["Created"]?.number ?? 0))
    item.collection = id.collectionName
    item.size = measure?.size ?? old?.item.size ?? 0
    let digest = measure?.digest ?? old?.digest ?? 0
    if let old, old.digest == digest, old.item.size == item.size {
      item.modified = old.item.modified
    } else {
      item.modified = isNews ? .now : Timestamp(seconds: Int64(clamping: touched))
    }
    return ItemCache.Record(
      item: item, digest: digest, contentType: measure?.contentType ?? old?.contentType ?? "",
      hasFields: found.hasFields(id), touched: touched)
  }
}

extension ItemID {
  /// `login`, as secret-tool's `--collection` takes it.
  var collectionName: ExactString { ExactString(collection.nameInPath) }
}

extension ServiceItem {
  /// An item's properties as the service gives them.
  init(_ properties: Variant) {
    let pairs = (properties["Attributes"]?.entries ?? []).compactMap { name, value in
      value.string.map { (ExactString(name), ExactString($0)) }
    }
    self.init(
      label: properties["Label"]?.string ?? "",
      attributes: Dictionary(pairs, uniquingKeysWith: { first, _ in first }))
  }
}

extension String {
  /// The last part of an object path, without the escapes that gnome-keyring writes: `_2d` for `-`.
  fileprivate var nameInPath: String {
    var bytes: [UInt8] = []
    var rest = (split(separator: "/").last ?? "").utf8[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "_"), rest.count >= 2,
        let escaped = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
      {
        bytes.append(escaped)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
