public import Tree

/// Who does what others did once more, through the mount's path, so that inotify(7) hears of it.
///
/// It has to be another process: if it were this one and were killed meanwhile, its call would wait for an
/// answer that nobody gives, and nothing of it would ever go.
public protocol EchoPerformer: AnyObject, Sendable {
  /// The thread whose requests are echoes, and nobody else's; 0: there is none now.
  var thread: Int32 { get }

  /// Performs the echo, and calls `done` when it is over, whatever came of it. One at a time.
  func perform(_ echo: Echo, done: @escaping @Sendable () -> Void)
}
