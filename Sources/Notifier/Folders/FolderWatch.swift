import Dispatch
import Platform
import Synchronization

/// Tells which files of a folder others create, change, move or delete, by inotify(7), for as long as the
/// object lives.
///
/// It outlives the folder: one that is moved away, removed or not there yet is watched as soon as something
/// has its path. Where the kernel refuses (the user has too many watches), the folder counts as changed
/// once a second.
public final class FolderWatch: Sendable {
  /// The part of the folder that may have changed.
  public enum News: Hashable, Sendable {
    /// The files of these names, without the folder.
    case files([String])
    /// Anything: the kernel's queue overflowed, the folder is another one now, or it is looked at by the clock.
    case everything
  }

  /// Which changes count.
  public enum Kind: Sendable {
    /// Every write, also to a file that stays open, as databases do, and every new time or mode.
    case anything
    /// Files that are complete: closed by their writer, moved or deleted.
    case wholeFiles
    /// Such files, and new times or modes: of a database whose writers set a time after each commit. A commit writes several
    /// times before.
    case commits
  }

  private let core: Core

  /// Begins at once. `heard` is called in turn, on a queue of the watch; while it works, the kernel keeps
  /// what comes next. Links whose names have the ending `followingLinks` are followed: what happens to the
  /// file that one leads to is news of the link.
  public init(
    _ folder: String, _ kind: Kind = .anything, followingLinks ending: String? = nil,
    heard: @escaping @Sendable (News) -> Void
  ) {
    core = Core(folder, kind, ending, heard)
    core.start()
  }

  deinit { core.stop() }

  /// Why the folder is looked at by the clock: errno(3) of inotify_init1 or inotify_add_watch; ENOSPC and
  /// EMFILE are the limits fs.inotify.max_user_watches and max_user_instances. nil: the kernel tells.
  public var failure: Int32? { core.failure }
}

/// The state for the watch's queue; its sources hold it weakly, so that it ends with the watch.
private final class Core: Sendable {
  private struct State {
    var descriptor: WatchDescriptor?
    var events: (any DispatchSourceRead)?
    var clock: (any DispatchSourceTimer)?
    var failure: Int32?
    var isStopped = false
  }

  private let folder: String
  private let kind: FolderWatch.Kind
  private let ending: String?
  private let heard: @Sendable (FolderWatch.News) -> Void
  private let queue = DispatchQueue(label: "keyhole.watch")
  private let state = Mutex(State())

  init(
    _ folder: String, _ kind: FolderWatch.Kind, _ ending: String?,
    _ heard: @escaping @Sendable (FolderWatch.News) -> Void
  ) {
    self.folder = folder
    self.kind = kind
    self.ending = ending
    self.heard = heard
  }

  var failure: Int32? { state.withLock { $0.failure } }

  func start() {
    queue.sync { begin() }
  }

  /// Nothing is heard after this has returned, unless it is called by what hears.
  func stop() {
    state.withLock { state in
      state.isStopped = true
      state.events?.cancel()
      state.clock?.cancel()
      (state.events, state.clock, state.descriptor) = (nil, nil, nil)
    }
  }

  /// Watches what is at the path now, in place of what was.
  private func begin() {
    var descriptor: WatchDescriptor?
    var failure: Int32?
    do throws(Errno) {
      descriptor = try WatchDescriptor(folder: folder, kind, followingLinks: ending)
    } catch {
      failure = error.rawValue
    }
    state.withLock { state in
      guard !state.isStopped else { return }
      state.events?.cancel()
      state.events = descriptor.map(source)
      state.descriptor = descriptor
      state.failure = failure
      if failure == nil { state.clock?.cancel() }
      state.clock = failure == nil ? nil : state.clock ?? timer()
    }
  }

  private func source(of descriptor: WatchDescriptor) -> any DispatchSourceRead {
    let source = DispatchSource.makeReadSource(fileDescriptor: descriptor.number, queue: queue)
    source.setEventHandler { [weak self] in self?.listen() }
    // The descriptor is closed when it is not read any more.
    source.setCancelHandler { withExtendedLifetime(descriptor) {} }
    source.activate()
    return source
  }

  private func timer() -> any DispatchSourceTimer {
    let timer = DispatchSource.makeTimerSource(queue: queue)
    timer.setEventHandler { [weak self] in
      self?.begin()
      self?.heard(.everything)
    }
    timer.schedule(deadline: .now() + 1, repeating: 1)
    timer.activate()
    return timer
  }

  /// A change of a file is several events in a row. What follows the first ones is read together, as each waking of this queue
  /// takes longer than to read them.
  private func listen() {
    while readEvents() { Pause.microseconds(1000) }
  }

  /// False: there was none, or another folder is watched now.
  private func readEvents() -> Bool {
    guard let descriptor = state.withLock({ $0.descriptor }) else { return false }
    let events = descriptor.read()
    guard !events.isEmpty else { return false }
    // The watches are made first: later changes are seen.
    if events.isStale { begin() }
    if events.isStale || events.hasOverflowed {
      heard(.everything)
    } else if !events.names.isEmpty {
      heard(.files(events.names))
    }
    return !events.isStale
  }
}
