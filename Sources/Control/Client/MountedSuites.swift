package import Model
import Platform
package import Store
import Synchronization

/// The suites of a running mount, for a process that can't read them by itself: those of a cluster, which only the mount's process
/// reaches.
///
/// Changes are made by the mount's process, so that they are events there as any change is.
package struct MountedSuites: SuiteEngine {
  /// How long a change is tried again that others come before.
  private static let patience = Duration.seconds(5)

  package let propertyLists: any PropertyListCoding
  private let runtimeFolder: String
  private let find: @Sendable () -> Int32?
  private let memory = Memory()

  /// Of all copies of the engine.
  private final class Memory: Sendable {
    /// A mount that did not answer, and until when it is not asked again: a call makes several requests.
    let silent = Mutex<(process: Int32, until: ContinuousClock.Instant)?>(nil)
    let hasRead = Atomic(false)
  }

  /// Whether a suite was read from a mount, or is known to be missing there.
  package var hasRead: Bool { memory.hasRead.load(ordering: .relaxed) }

  /// How long the mount's process may take for a request, in seconds: a change in a cluster takes five.
  private static let mostSeconds = 7

  /// `find` gives the process of the mount; nil: there is none.
  package init(
    propertyLists: any PropertyListCoding, runtimeFolder: String, find: @escaping @Sendable () -> Int32?
  ) {
    (self.propertyLists, self.runtimeFolder, self.find) = (propertyLists, runtimeFolder, find)
  }

  func ask(_ request: SuiteRequest) throws(StoreError) -> ControlMessage {
    guard let process = find() else { throw ControlClient.gone }
    if let silent = memory.silent.withLock({ $0 }), silent.process == process, silent.until > .now {
      throw MessageChannel.noAnswer
    }
    do throws(StoreError) {
      return try ControlClient.ask(
        process, in: runtimeFolder, .askSuites(request), patience: Self.mostSeconds)
    } catch {
      if error == MessageChannel.noAnswer {
        memory.silent.withLock { $0 = (process, .now + .seconds(Self.mostSeconds)) }
      }
      throw error
    }
  }

  func reply(to request: SuiteRequest) throws(StoreError) -> SuiteReply {
    guard case .suites(let reply) = try ask(request) else { throw WireReader.unreadable }
    return reply
  }

  package func suites() throws(StoreError) -> [ExactString: SuiteStamp] {
    guard case .list(let suites) = try reply(to: .list) else { throw WireReader.unreadable }
    return Dictionary(suites.map { ($0.name, $0.stamp) }) { $1 }
  }

  package func stamp(of suite: ExactString) throws(StoreError) -> SuiteStamp? {
    guard case .stamp(let stamp) = try reply(to: .stamp(suite)) else { throw WireReader.unreadable }
    return stamp
  }

  package func read(_ suite: ExactString, since known: SuiteContents?) throws(StoreError) -> SuiteContents? {
    guard case .contents(let record) = try reply(to: .contents(suite)) else { throw WireReader.unreadable }
    memory.hasRead.store(true, ordering: .relaxed)
    return record?.contents
  }

  package func update(
    _ suite: ExactString, known: SuiteContents?, _ body: (inout SuiteContents) throws(StoreError) -> Void
  ) throws(StoreError) -> SuiteContents {
    let end = ContinuousClock.now + Self.patience
    // The mount's process refuses edits of what is not stored any more, and then it is read again.
    var given = known
    while true {
      let known = given.take()
      guard let stored = try latest(known, of: suite), let stamp = stored.stamp else { throw .notFound }
      var changed = stored
      do throws(StoreError) { try body(&changed) } catch {
        // It may have seen contents that are not stored any more.
        if known != nil, try self.stamp(of: suite) != stamp { continue }
        throw error
      }
      let edits = changed.settings.differences(from: stored.settings).map { difference in
        SuiteEdit(
          key: difference.key, value: difference.after?.value, modified: difference.after?.modified)
      }
      if edits.isEmpty {
        if known != nil, try self.stamp(of: suite) != stamp { continue }
        return stored
      }
      do throws(StoreError) {
        guard case .contents(let record?) = try reply(to: .change(suite, from: stamp, edits)) else {
          throw WireReader.unreadable
        }
        return record.contents
      } catch .interrupted where ContinuousClock.now < end {
        continue
      } catch .interrupted {
        throw .unreachable(reason: "other clients change the suite all the time")
      }
    }
  }

  private func latest(_ known: SuiteContents?, of suite: ExactString) throws(StoreError) -> SuiteContents? {
    if let known { return known }
    return try read(suite, since: nil)
  }

  package func readOnlyReason(of suite: ExactString) throws(StoreError) -> String? {
    guard case .readOnly(let reason) = try reply(to: .readOnlyReason(suite)) else {
      throw WireReader.unreadable
    }
    return reason
  }

  package func create(_ suite: ExactString) throws(StoreError) -> SuiteContents {
    _ = try ask(.create(suite))
    return try read(suite, since: nil) ?? SuiteContents()
  }

  package func remove(_ suite: ExactString) throws(StoreError) { _ = try ask(.remove(suite)) }

  package func rename(_ suite: ExactString, to name: ExactString) throws(StoreError) {
    _ = try ask(.rename(suite, to: name))
  }

  /// Does nothing: the mount's process returns when the cluster has stored a change.
  package func synchronize(_ suite: ExactString) throws(StoreError) {}

  package func room() throws(StoreError) -> DiskRoom {
    guard case .room(let room?) = try ask(.room) else { throw WireReader.unreadable }
    return room
  }

  /// The layers that the suites are made of, the lowest first; empty: there are none.
  package func layers() throws(StoreError) -> [String] {
    guard case .layers(let names, _) = try reply(to: .layers) else { throw WireReader.unreadable }
    return names
  }

  /// As the mount's process hears the servers; true also where that does not answer.
  package var isStale: Bool? {
    guard case .isStale(let isStale)? = try? reply(to: .isStale) else { return true }
    return isStale
  }

  package func problems() -> [Problem] {
    guard case .problems(let problems)? = try? ask(.problems) else { return [] }
    return problems
  }
}

extension MountedSuites: SettingOrigins {
  /// nil: the suites are not made of layers. A mount that does not answer says so when it is asked.
  package var origins: (any SettingOrigins)? { (try? layers())?.isEmpty == true ? nil : self }

  /// Empty also where the mount does not answer.
  package var layerNames: [String] { (try? layers()) ?? [] }

  package var writtenLayer: String {
    guard case .layers(_, let written)? = try? reply(to: .layers) else { return "" }
    return written
  }

  package func origin(of key: ExactString, in suite: ExactString) throws(StoreError) -> String? {
    guard case .origin(let layer) = try reply(to: .origin(suite, key: key)) else {
      throw WireReader.unreadable
    }
    return layer
  }

  /// nil: the mount's process says so at the change.
  package func obstacle(toChanging key: ExactString, in suite: ExactString) throws(StoreError) -> String? {
    nil
  }

  package func reset(_ key: ExactString?, in suite: ExactString) throws(StoreError) -> Int {
    guard case .reset(let count) = try reply(to: .reset(suite, key: key)) else { throw WireReader.unreadable }
    return count
  }
}
