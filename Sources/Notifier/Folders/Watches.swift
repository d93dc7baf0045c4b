import Platform

/// The folders that one inotify descriptor watches, and the meaning of its events.
struct Watches: Sendable {
  private let inotify: Inotify
  private let path: String
  private let ending: String?
  /// nil: the folder is not there.
  private var folder: Int32?
  /// The folder where the path goes on with a name that is missing.
  private var missing: File?
  /// Links of the folder, by the file that they lead to.
  private var links: [File: [String]] = [:]

  private struct File: Hashable {
    var watch: Int32
    var name: String
  }

  private let content: Inotify.Events
  private static let own: Inotify.Events = [.movedSelf, .deletedSelf]

  init(
    folder: String, _ kind: FolderWatch.Kind, followingLinks ending: String?, on inotify: Inotify
  ) throws(Errno) {
    self.inotify = inotify
    // A new link raises IN_CREATE alone.
    let whole: Inotify.Events = [.closedAfterWriting, .created, .deleted, .movedAway, .movedHere]
    content =
      switch kind {
      case .anything: whole.union([.changed, .attributes])
      case .commits: whole.union(.attributes)
      case .wholeFiles: whole
      }
    path = folder
    self.ending = ending
    while try !watch() {}
  }

  /// False: something came or went meanwhile, so that it has to be done again.
  private mutating func watch() throws(Errno) -> Bool {
    if let gap = try watchWay() {
      guard let watch = try add(gap.folder, Self.own.union([.created, .movedHere, .added])) else {
        // Its creation can't be watched.
        throw .EACCES
      }
      missing = File(watch: watch, name: gap.name)
      return !exists(gap.folder + "/" + gap.name)
    }
    guard let watch = try add(path, Self.own.union(content)) else { throw .EACCES }
    folder = watch
    missing = nil
    if let ending { try watchLinks(ending) }
    return exists(path)
  }

  /// Watches the folders and links on the way. Returns where it ends, if it does.
  private func watchWay() throws(Errno) -> (folder: String, name: String)? {
    var above = ""
    // By scalars: a slash and a combining mark behind it are one Character.
    for part in path.unicodeScalars.split(separator: "/") {
      let here = above + "/" + String(part)
      // That a link is removed is a change of its attributes.
      if isLink(here) { _ = try add(here, Self.own.union([.attributes, .noFollow])) }
      guard exists(here) else { return (above.isEmpty ? "/" : above, String(part)) }
      if here.utf8.count < path.utf8.count { _ = try add(here, Self.own.union(.added)) }
      above = here
    }
    return nil
  }

  /// Watches the folders of the files that links lead to.
  private mutating func watchLinks(_ ending: String) throws(Errno) {
    for name in (try? Files.names(in: path)) ?? []
    where name.hasSuffix(ending) && isLink(path + "/" + name) {
      guard let target = try? Files.realPath(path + "/" + name) else { continue }
      let parts = target.unicodeScalars.split(separator: "/").map { String($0) }
      guard let file = parts.last else { continue }
      let events = content.union(Self.own).union(.added)
      guard let watch = try add("/" + parts.dropLast().joined(separator: "/"), events) else { continue }
      links[File(watch: watch, name: String(file)), default: []].append(name)
    }
  }

  /// nil: it is not there any more, or may not be read.
  private func add(_ path: String, _ events: Inotify.Events) throws(Errno) -> Int32? {
    do throws(Errno) { return try inotify.watch(path, events) } catch {
      guard [.ENOENT, .ENOTDIR, .EACCES, .ELOOP].contains(error) else { throw error }
      return nil
    }
  }
}

extension Watches {
  private static let gone: Inotify.Events = [.movedSelf, .deletedSelf, .unmounted, .ended]
  private static let renewed: Inotify.Events = [.created, .movedHere, .deleted, .movedAway]

  /// The files of the folder that an event is about.
  func names(of event: Event) -> [String] {
    guard !event.name.isEmpty else { return [] }
    let linked = links[File(watch: event.watch, name: event.name)] ?? []
    return event.watch == folder ? [event.name] + linked : linked
  }

  /// Whether the path may lead elsewhere now.
  func isStale(after event: Event) -> Bool {
    if event.events.hasAny(of: Self.gone) { return true }
    if event.name.isEmpty { return event.events.contains(.attributes) && event.watch != folder }
    return missing == File(watch: event.watch, name: event.name) || isOfLink(event)
  }

  /// A link of the folder came, went, or leads elsewhere now.
  private func isOfLink(_ event: Event) -> Bool {
    guard event.watch == folder, event.events.hasAny(of: Self.renewed) else { return false }
    guard let ending, event.name.hasSuffix(ending) else { return false }
    return links.values.contains { $0.contains(event.name) } || isLink(path + "/" + event.name)
  }
}

private func exists(_ path: String) -> Bool { Files.exists(path) }

private func isLink(_ path: String) -> Bool {
  (try? Files.status(path, followingLinks: false))?.isLink == true
}
