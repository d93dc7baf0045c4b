public import Foundation
public import KeyPathObservation
import WrapperCore

/// Objects whose properties can be watched: those that read wrappers of Keyhole, and those of `@Observable`
/// classes.
public protocol PropertyWatchable where Self: NSObject {
  /// The class itself, which the compiler infers.
  associatedtype _Observee: NSObject = Self
  /// The observations of the object, which its extension makes with the first one.
  var watcher: PropertyWatcher<_Observee> { get }
}

extension PropertyWatchable where _Observee == Self {
  /// The object's observations. They end with the object.
  public var watcher: PropertyWatcher<_Observee> { Watchers.watcher(of: self) }

  /// Calls a handler with the object and the change after each change of a property.
  ///
  /// Without an id every line of code is an observation of its own.
  @discardableResult
  public func watch<Value>(
    _ keyPath: KeyPath<_Observee, Value>, _file: String = #file, _function: String = #function,
    _line: Int = #line, id: String? = nil, options: NSKeyValueObservingOptions? = nil,
    changeHandler: @escaping (_Observee, NSKeyValueObservedChange<Value>) -> Void
  ) -> PropertyWatcherInfo {
    let own = id ?? Watchers.id(_file, _function, _line)
    return watcher.watch(self, keyPath, id: own, file: id == nil ? _file : nil, options, changeHandler)
  }

  /// Calls a handler after each change of a property.
  @discardableResult
  public func watch<Value>(
    _ keyPath: KeyPath<_Observee, Value>, _file: String = #file, _function: String = #function,
    _line: Int = #line, id: String? = nil, options: NSKeyValueObservingOptions? = nil,
    changeHandler: @escaping () -> Void
  ) -> PropertyWatcherInfo {
    watch(
      keyPath, _file: _file, _function: _function, _line: _line, id: id, options: options
    ) { _, _ in changeHandler() }
  }

  /// The observations of a property, or of those the one with an id.
  public func watching<Value>(by keyPath: KeyPath<_Observee, Value>, id: String? = nil)
    -> [PropertyWatcherInfo]
  {
    watcher.infos { info, _ in info.keyPath == keyPath && (id == nil || info.id == id) }
  }

  /// Ends the observations of a property, or of those the ones with these ids.
  @discardableResult
  public func unwatch<Value>(
    _ keyPath: KeyPath<_Observee, Value>, forIds ids: [String]? = nil
  ) -> [String: Bool] {
    let known = watching(by: keyPath).map(\.id)
    return unwatch(forIds: ids.map { ids in known.filter(ids.contains) } ?? known)
  }

  /// Ends observations by their ids; true for each that there was.
  @discardableResult
  public func unwatch(forIds ids: [String]) -> [String: Bool] {
    watcher.remove(ids)
  }

  /// Ends the observations that were begun without an id in the file of the caller, of a property or of all.
  ///
  /// - Returns: whether there was one.
  @discardableResult
  public func unwatchAllFilePrivate<Value>(
    _file: String = #file, _ keyPath: KeyPath<_Observee, Value>?
  ) -> Bool {
    let ids = watcher.infos { $1 == _file && (keyPath == nil || $0.keyPath == keyPath) }.map(\.id)
    watcher.remove(ids)
    return !ids.isEmpty
  }

  /// Ends the observations that were begun without an id in the file of the caller.
  ///
  /// - Returns: whether there was one.
  @discardableResult
  public func unwatchAllFilePrivate(_file: String = #file) -> Bool {
    unwatchAllFilePrivate(_file: _file, nil as KeyPath<_Observee, Never>?)
  }

  /// Ends every observation of every object in the program.
  public func unwatchAll() {
    Watchers.removeAll()
  }
}

/// The watchers of all objects that have one.
enum Watchers {
  private struct Entry {
    weak var object: NSObject?
    let watcher: NSObject
    let removeAll: () -> Void
  }

  private static let known = Guarded<[ObjectIdentifier: Entry]>([:])

  static func watcher<Object: NSObject>(of object: Object) -> PropertyWatcher<Object> {
    known.withLock { known in
      let identity = ObjectIdentifier(object)
      // An object that is gone may have had the same address.
      if let entry = known[identity], entry.object === object,
        let watcher = entry.watcher as? PropertyWatcher<Object>
      {
        return watcher
      }
      known = known.filter { $0.value.object != nil }
      let watcher = PropertyWatcher<Object>()
      known[identity] = Entry(object: object, watcher: watcher) { [weak watcher] in
        guard let watcher else { return }
        watcher.remove(watcher.infos { _, _ in true }.map(\.id))
      }
      return watcher
    }
  }

  static func removeAll() {
    for entry in known.withLock({ Array($0.values) }) { entry.removeAll() }
  }

  /// The id of an observation that was begun without one.
  static func id(_ file: String, _ function: String, _ line: Int) -> String {
    let name = file.split(separator: "/").last?.split(separator: ".").first ?? ""
    return "\(name)_\(function)_\(line)"
  }
}
