public import Foundation
public import KeyPathObservation
import WrapperCore

/// One observation of a property.
public struct PropertyWatcherInfo {
  /// An id for an observation that every later one with this id replaces. It is a constant of the original.
  public static let StaticId = "PropertyWatcherInfo_static"

  /// The id of the observation, unique for its object.
  public let id: String
  /// The observed property.
  public let keyPath: AnyKeyPath
  let observer: NSKeyValueObservation
}

/// The observations of one object, as the original's protocol has them.
public protocol _PropertyWatchable: AnyObject {
  /// The class whose properties are observed.
  associatedtype KeyPathRoot: NSObject

  /// Observes a property of `target`; an earlier observation with the same `id` ends. `options` nil is `.new`.
  func watch<Value>(
    _ target: KeyPathRoot, _ keyPath: KeyPath<KeyPathRoot, Value>, id: String,
    options: NSKeyValueObservingOptions?,
    changeHandler: @escaping (KeyPathRoot, NSKeyValueObservedChange<Value>) -> Void
  ) -> PropertyWatcherInfo
}

/// The observations of one object, each under an id of its own.
public class PropertyWatcher<KeyPathRoot: NSObject>: NSObject, _PropertyWatchable {
  private let entries = Guarded<[String: Entry]>([:])

  private struct Entry {
    let info: PropertyWatcherInfo
    /// The file of an observation whose id was made, not given.
    let file: String?
  }

  /// Observes a property; an earlier observation of the same id ends.
  @discardableResult
  public func watch<Value>(
    _ target: KeyPathRoot, _ keyPath: KeyPath<KeyPathRoot, Value>, id: String,
    options: NSKeyValueObservingOptions? = nil,
    changeHandler: @escaping (KeyPathRoot, NSKeyValueObservedChange<Value>) -> Void
  ) -> PropertyWatcherInfo {
    watch(target, keyPath, id: id, file: nil, options, changeHandler)
  }

  func watch<Value>(
    _ target: KeyPathRoot, _ keyPath: KeyPath<KeyPathRoot, Value>, id: String, file: String?,
    _ options: NSKeyValueObservingOptions?,
    _ handler: @escaping (KeyPathRoot, NSKeyValueObservedChange<Value>) -> Void
  ) -> PropertyWatcherInfo {
    remove([id])
    let observer = keyPathObservation(target, keyPath, options ?? .new, handler)
    let info = PropertyWatcherInfo(id: id, keyPath: keyPath, observer: observer)
    entries.withLock { $0[id] = Entry(info: info, file: file) }
    return info
  }

  func infos(where isWanted: (PropertyWatcherInfo, _ file: String?) -> Bool) -> [PropertyWatcherInfo] {
    entries.withLock { entries in
      entries.values.filter { isWanted($0.info, $0.file) }.map(\.info).sorted { $0.id < $1.id }
    }
  }

  /// Ends observations; true for each that there was.
  @discardableResult
  func remove(_ ids: [String]) -> [String: Bool] {
    var found: [String: Bool] = [:]
    for id in ids {
      let entry = entries.withLock { $0.removeValue(forKey: id) }
      entry?.info.observer.invalidate()
      found[id] = found[id] == true || entry != nil
    }
    return found
  }
}
