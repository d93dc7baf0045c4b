package import Model
package import Store

/// Suites that are made of those of several layers: of each key the last layer that has it gives the value. Changes are written to
/// one of them.
///
/// A suite is there where any layer has it. The layer that is written gets a suite of that name with the first change.
package final class LayeredSuites: SuiteEngine {
  let layers: [SettingLayer]
  let written: Int
  private let merged: MergedSuites
  private let removed: RemovedSuites

  /// `layers`: the lowest first. `written`: the name of the one to which changes are written.
  ///
  /// - Throws: `notFound` where it is none of them; `exists` where two have one name.
  package convenience init(_ layers: [SettingLayer], writing written: String) throws(StoreError) {
    guard Set(layers.map(\.name)).count == layers.count else { throw .exists }
    guard let index = layers.firstIndex(where: { $0.name == written }) else { throw .notFound }
    self.init(layers, index, MergedSuites(), RemovedSuites())
  }

  private init(
    _ layers: [SettingLayer], _ written: Int, _ merged: MergedSuites, _ removed: RemovedSuites
  ) {
    (self.layers, self.written, self.merged, self.removed) = (layers, written, merged, removed)
  }

  var top: SettingLayer { layers[written] }

  package var propertyLists: any PropertyListCoding { top.engine.propertyLists }

  /// The suites whose names an engine has told to be changed.
  package func suites(stored: ExactString) -> [ExactString] {
    if stored == top.storedList {
      _ = try? removedSuites()
      return removed.all
    }
    return Array(Set(layers.compactMap { $0.suite(stored: stored) }))
  }

  package func suites() throws(StoreError) -> [ExactString: SuiteStamp] {
    var stamps: [ExactString: LayeredStamp] = [:]
    for (index, layer) in layers.enumerated() {
      for (stored, stamp) in try layer.engine.suites() {
        guard let suite = layer.suite(stored: stored) else { continue }
        stamps[suite, default: LayeredStamp()].add(stamp, of: index)
      }
    }
    for suite in try hidden() { stamps[suite] = nil }
    return stamps.compactMapValues(\.stamp)
  }

  package func suiteNames() throws(StoreError) -> [ExactString] {
    var names: Set<ExactString> = []
    for layer in layers { names.formUnion(try layer.engine.suiteNames().compactMap(layer.suite(stored:))) }
    return Array(names.subtracting(try hidden()))
  }

  package var hasProvenNames: Bool { layers.allSatisfy(\.engine.hasProvenNames) }

  package func stamp(of suite: ExactString) throws(StoreError) -> SuiteStamp? {
    guard try !isHidden(suite) else { return nil }
    return try storedStamp(of: suite)
  }

  private func storedStamp(of suite: ExactString) throws(StoreError) -> SuiteStamp? {
    var stamp = LayeredStamp()
    for (index, layer) in layers.enumerated() {
      if let part = try layer.engine.stamp(of: layer.stored(suite)) { stamp.add(part, of: index) }
    }
    return stamp.stamp
  }

  package func read(_ suite: ExactString, since known: SuiteContents?) throws(StoreError) -> SuiteContents? {
    let parts = try parts(of: suite)
    guard parts.isThere, try !isHidden(suite) else {
      merged.forget(suite)
      return nil
    }
    return contents(suite, parts)
  }

  package func update(
    _ suite: ExactString, known: SuiteContents?, _ body: (inout SuiteContents) throws(StoreError) -> Void
  ) throws(StoreError) -> SuiteContents {
    var parts = try parts(of: suite)
    guard parts.isThere, try !isHidden(suite) else { throw .notFound }
    // One that was removed here and shows again is there now, whatever becomes of its keys.
    try top.setRemoved(false, suite)
    if parts.contents[written] == nil {
      let before = contents(suite, parts)
      guard try changed(before, parts, body).isEmpty == false else { return before }
      do throws(StoreError) { _ = try top.engine.create(top.stored(suite)) } catch .exists {}
    }
    // The other layers are as they were just now: they may have the same engine, which must not be asked in the change.
    let stored = try top.engine.update(top.stored(suite), known: nil) { (stored) throws(StoreError) in
      parts.contents[written] = stored
      stored.settings = try changed(contents(suite, parts), parts, body)
    }
    parts.contents[written] = stored
    return contents(suite, parts)
  }

  /// The settings of the layer that is written, after a change of what is shown.
  private func changed(
    _ shown: SuiteContents, _ parts: Parts, _ body: (inout SuiteContents) throws(StoreError) -> Void
  ) throws(StoreError) -> SharedDictionary<Setting> {
    var after = shown
    try body(&after)
    return try parts.layers(layers).changing(to: after.settings, in: top.name, from: shown.settings)
  }

  package func readOnlyReason(of suite: ExactString) throws(StoreError) -> String? {
    try top.engine.readOnlyReason(of: top.stored(suite))
  }

  package func create(_ suite: ExactString) throws(StoreError) -> SuiteContents {
    try Self.check(suite)
    guard try stamp(of: suite) == nil else { throw .exists }
    if try top.engine.stamp(of: top.stored(suite)) == nil { _ = try top.engine.create(top.stored(suite)) }
    try top.setRemoved(false, suite)
    return contents(suite, try parts(of: suite))
  }

  /// A suite that a layer below has is noted as removed, and shows again as soon as it has another key there.
  ///
  /// - Throws: `notPermitted` where a layer above the written one has the suite.
  package func remove(_ suite: ExactString) throws(StoreError) {
    guard let contents = try read(suite) else { throw .notFound }
    guard contents.settings.isEmpty else { throw .notEmpty }
    guard try isBelow(suite) else {
      try requireWrittenAlone(suite)
      try removeWritten(suite)
      return merged.forget(suite)
    }
    try top.setRemoved(true, suite)
    merged.forget(suite)
  }

  /// - Throws: `notPermitted` where a layer that is not written has the suite.
  package func rename(_ suite: ExactString, to name: ExactString) throws(StoreError) {
    guard try stamp(of: suite) != nil else { throw .notFound }
    try Self.check(name)
    if suite != name {
      guard try stamp(of: name) == nil else { throw .exists }
      try requireWrittenAlone(suite)
      // Also one that is removed here: it would take the keys of the layers below.
      try requireWrittenAlone(name)
      if try top.engine.stamp(of: top.stored(name)) != nil { try removeWritten(name) }
      try dropTombstones(suite)
    }
    try top.engine.rename(top.stored(suite), to: top.stored(name))
    merged.forget(suite)
  }

  /// The engine checks the rest: with the layer's name before it, an empty one is a name there.
  private static func check(_ suite: ExactString) throws(StoreError) {
    guard !suite.isEmpty else { throw .invalidName(reason: "a suite needs a name") }
  }

  /// Removes a suite that no other layer has, and that shows nothing.
  private func removeWritten(_ suite: ExactString) throws(StoreError) {
    try dropTombstones(suite)
    try top.engine.remove(top.stored(suite))
    try top.setRemoved(false, suite)
  }

  /// Of a suite that no other layer has: they stand for nothing any more.
  private func dropTombstones(_ suite: ExactString) throws(StoreError) {
    _ = try top.engine.update(top.stored(suite), known: nil) { stored in
      for (key, setting) in stored.settings where setting.value == SettingLayers.tombstone {
        stored.settings[key] = nil
      }
    }
  }

  private func requireWrittenAlone(_ suite: ExactString) throws(StoreError) {
    for (index, layer) in layers.enumerated() where index != written {
      guard try layer.engine.stamp(of: layer.stored(suite)) == nil else {
        throw .notPermitted(
          reason: "the layer \(layer.name) has this suite too, and changes are written to \(top.name) only")
      }
    }
  }

  /// Whether a layer below the written one has the suite, and none above it.
  private func isBelow(_ suite: ExactString) throws(StoreError) -> Bool {
    guard top.canRemoveSuites else { return false }
    var isBelow = false
    for (index, layer) in layers.enumerated() where index != written {
      guard try layer.engine.stamp(of: layer.stored(suite)) != nil else { continue }
      guard index < written else { return false }
      isBelow = true
    }
    return isBelow
  }

  /// The suites that were removed in the layer that is written, as far as no other layer shows a key of them.
  private func hidden() throws(StoreError) -> [ExactString] {
    var hidden: [ExactString] = []
    for suite in try removedSuites() {
      if try showsNothing(suite) { hidden.append(suite) }
    }
    return hidden
  }

  private func isHidden(_ suite: ExactString) throws(StoreError) -> Bool {
    guard try removedSuites().contains(suite) else { return false }
    return try showsNothing(suite)
  }

  /// A list that can't be read hides no suite: those that were removed are empty.
  private func removedSuites() throws(StoreError) -> [ExactString] {
    do throws(StoreError) {
      let suites = try top.removedSuites()
      removed.note(suites)
      return suites
    } catch .damaged { return [] }
  }

  private func showsNothing(_ suite: ExactString) throws(StoreError) -> Bool {
    try merged.settings(of: suite, parts(of: suite).layers(layers)).isEmpty
  }

  /// Whether one of the layers is; nil: all are kept on this machine.
  package var isStale: Bool? {
    let states = layers.compactMap(\.engine.isStale)
    return states.isEmpty ? nil : states.contains(true)
  }

  package var largestValue: Int? { top.engine.largestValue }

  package func synchronize(_ suite: ExactString) throws(StoreError) {
    try top.engine.synchronize(top.stored(suite))
  }

  package func room() throws(StoreError) -> DiskRoom { try top.engine.room() }

  /// Those of all engines, each once.
  package func problems() -> [Problem] {
    var seen: Set<Problem> = []
    return layers.flatMap { $0.engine.problems() }.filter { seen.insert($0).inserted }
  }

  package var withoutWaiting: any SuiteEngine {
    LayeredSuites(layers.map(\.withoutWaiting), written, merged, removed)
  }

  package func waitForLock(of suite: ExactString) throws(StoreError) {
    try top.engine.waitForLock(of: top.stored(suite))
  }
}

extension LayeredSuites: SettingOrigins {
  /// The engine itself.
  package var origins: (any SettingOrigins)? { self }

  package var layerNames: [String] { layers.map(\.name) }

  package var writtenLayer: String { top.name }

  package func origin(of key: ExactString, in suite: ExactString) throws(StoreError) -> String? {
    try parts(of: suite).layers(layers).origin(of: key)
  }

  package func obstacle(toChanging key: ExactString, in suite: ExactString) throws(StoreError) -> String? {
    try parts(of: suite).layers(layers).obstacle(toChanging: key, in: written)
  }

  package func reset(_ key: ExactString?, in suite: ExactString) throws(StoreError) -> Int {
    let shown = try parts(of: suite)
    guard shown.isThere else { throw .notFound }
    if let key { try shown.layers(layers).checkReset(of: key, in: written) }
    var count = 0
    if shown.contents[written] != nil {
      let stored = try top.engine.update(top.stored(suite), known: nil) { (stored) throws(StoreError) in
        var parts = shown
        parts.contents[written] = stored
        let after = parts.layers(layers).resetting(key, in: written)
        count = stored.settings.count - after.count
        stored.settings = after
      }
      // Else it would keep the folder where the layers below lose theirs.
      if stored.settings.isEmpty, history == nil || keepsVersions(of: suite), try isBelow(suite) {
        do throws(StoreError) { try top.engine.remove(top.stored(suite)) } catch .notEmpty {} catch .notFound
        {}
      }
    }
    if try top.setRemoved(false, suite) { count = max(count, 1) }
    return count
  }
}

extension LayeredSuites {
  /// The contents of a suite in each layer; nil: it has none.
  private struct Parts {
    var contents: [SuiteContents?]

    var isThere: Bool { contents.contains { $0 != nil } }

    func layers(_ layers: [SettingLayer]) -> SettingLayers {
      SettingLayers(zip(layers, contents).map { SettingLayers.Layer($0.name, $1?.settings ?? [:]) })
    }

    var stamp: SuiteStamp? {
      var stamp = LayeredStamp()
      for (index, contents) in contents.enumerated() {
        if let part = contents?.stamp { stamp.add(part, of: index) }
      }
      return stamp.stamp
    }
  }

  private func parts(of suite: ExactString) throws(StoreError) -> Parts {
    var contents: [SuiteContents?] = []
    for layer in layers { contents.append(try layer.engine.read(layer.stored(suite))) }
    return Parts(contents: contents)
  }

  private func contents(_ suite: ExactString, _ parts: Parts) -> SuiteContents {
    SuiteContents(
      settings: merged.settings(of: suite, parts.layers(layers)), stamp: parts.stamp,
      readOnly: parts.contents[written]?.readOnly)
  }
}

/// The stamp of a suite that several layers have: another one where that of any layer is another.
private struct LayeredStamp {
  private var hasher = Hasher()
  private var size: Int64 = 0
  private var modified: Timestamp?

  init() {}

  mutating func add(_ part: SuiteStamp, of layer: Int) {
    hasher.combine(layer)
    hasher.combine(part)
    size &+= part.size
    modified = max(modified ?? part.modified, part.modified)
  }

  /// nil: no layer has the suite.
  var stamp: SuiteStamp? {
    modified.map {
      SuiteStamp(number: UInt64(truncatingIfNeeded: hasher.finalize()), size: size, modified: $0)
    }
  }
}
