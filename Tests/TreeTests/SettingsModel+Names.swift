import Model
import Tree

extension SettingsModel {
  mutating func rename(_ old: Name, _ new: Name) throws {
    guard isVisible(old), stored[new.suite] != nil else { throw Failure.missing }
    guard old != new else { return }
    switch (old.isScratch, new.isScratch) {
    case (false, false): try moveKey(old, new)
    case (false, true): setAside(old, new)
    case (true, false): try save(old, new)
    case (true, true): moveScratch(old, new)
    }
    replaceFile(at: new)
    files[new] = files.removeValue(forKey: old)
    files[new]?.writer?.name = new
  }

  private mutating func moveKey(_ old: Name, _ new: Name) throws {
    if pending[old] != nil, let writer = files[old]?.writer {
      guard !writer.hasFailed else { throw Failure.invalid }
      try commit(writer)
    }
    guard var moved = value(old) else { throw Failure.missing }
    if files[old]?.isExclusive == true, let type = settledType(new), type != moved.type {
      moved = try read(codec.content(of: moved), as: type)
    }
    stored[new.suite]?[new.name] = moved
    stored[old.suite]?[old.name] = nil
    emptyTypes[new] = emptyTypes.removeValue(forKey: old)
    (pending[new], aside[new]) = (nil, nil)
  }

  private mutating func setAside(_ old: Name, _ new: Name) {
    removeAside(at: new, except: old)
    scratch[new] = content(old)
    if !dropPending(old) { aside[old] = new }
  }

  private mutating func save(_ old: Name, _ new: Name) throws {
    try store(scratch[old] ?? [], at: new)
    scratch[old] = nil
    removeAside(at: old, except: new)
  }

  private mutating func moveScratch(_ old: Name, _ new: Name) {
    removeAside(at: new)
    scratch[new] = scratch.removeValue(forKey: old)
    for (name, place) in aside where place == old { aside[name] = new }
  }

  /// Files that were renamed to the scratch name go with it, except one that a new file is about to replace.
  private mutating func removeAside(at scratch: Name, except kept: Name? = nil) {
    for (name, place) in aside where place == scratch && name != kept && pending[name] == nil {
      stored[name.suite]?[name.name] = nil
      (emptyTypes[name], aside[name]) = (nil, nil)
    }
  }

  mutating func remove(_ name: Name) throws {
    guard stored[name.suite] != nil, isVisible(name) else { throw Failure.missing }
    if name.isScratch {
      removeAside(at: name)
      scratch[name] = nil
    } else {
      stored[name.suite]?[name.name] = nil
      emptyTypes[name] = nil
      (pending[name], aside[name]) = (nil, nil)
    }
    replaceFile(at: name)
  }

  mutating func makeSuite(_ suite: String) throws {
    guard stored[suite] == nil else { throw Failure.exists }
    stored[suite] = [:]
  }

  mutating func removeSuite(_ suite: String) throws {
    guard let keys = stored[suite] else { throw Failure.missing }
    guard keys.isEmpty, list(suite).isEmpty else { throw Failure.notEmpty }
    stored[suite] = nil
  }

  mutating func setType(_ type: SettingType, _ name: Name) throws {
    guard stored[name.suite] != nil, isVisible(name) else { throw Failure.missing }
    let writer = files[name]?.writer
    let isWritten = writer.map { !$0.hasFailed && ($0.isChanged || $0.isTruncated) } ?? false
    if isWritten { writer?.declared = type }
    if pending[name] != nil { pending[name] = .some(type) }
    guard !isWritten, pending[name] == nil, let present = value(name) else { return }
    if present == .data([]), type != .string { return emptyTypes[name] = type }
    guard present.type != type else { return }
    let converted = try read(codec.content(of: present), as: type)
    stored[name.suite]?[name.name] = converted
  }
}
