/// Makes external changes again through the mount's path, so that inotify(7) watchers see them.
///
/// It has to be another process: if it were this one and were killed meanwhile, its call would wait for its
/// own answer, and the process could never end.
public protocol ReplayPerformer: AnyObject, Sendable {
  /// The thread whose requests are replays and nothing else; 0: there is none now.
  var thread: Int32 { get }

  /// Performs the replay, and calls `done` once when it is over, whatever its result. One at a time.
  func perform(_ replay: Replay<some ReplayTarget>, done: @escaping @Sendable () -> Void)
}
