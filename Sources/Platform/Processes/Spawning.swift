import CSystem
import Glibc

/// posix_spawn(3) of a program with the signals that a shell would start it with: the threads that start programs here
/// have all signals blocked, and a program keeps that.
///
/// `path` is looked up in `PATH` where it has no slash. Without `environment` the program has ours, byte for byte. Of our
/// descriptors it gets those of `streams`, and those that have no O_CLOEXEC. `keepsSignalMask`: the signals that this thread
/// blocks stay blocked in it, so that a manager of services that ends the whole service does not end it before it is done.
package func spawn(
  _ path: String, _ arguments: [String], environment: [String]? = nil, streams: [SpawnStream] = [],
  in group: SpawnGroup = .ours, keepingSignalMask keepsSignalMask: Bool = false
) throws(SpawnFailure) -> Int32 {
  var actions = unsafe posix_spawn_file_actions_t()
  var attributes = posix_spawnattr_t()
  var signals = sigset_t()
  unsafe posix_spawn_file_actions_init(&actions)
  unsafe posix_spawnattr_init(&attributes)
  defer {
    unsafe posix_spawn_file_actions_destroy(&actions)
    unsafe posix_spawnattr_destroy(&attributes)
  }
  for stream in streams { unsafe stream.add(to: &actions) }
  unsafe sigemptyset(&signals)
  unsafe posix_spawnattr_setsigmask(&attributes, &signals)
  unsafe sigfillset(&signals)
  unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
  let mask = keepsSignalMask ? 0 : Int16(POSIX_SPAWN_SETSIGMASK)
  let flags = Int16(POSIX_SPAWN_SETSIGDEF) | mask | group.rawValue
  unsafe posix_spawnattr_setflags(&attributes, flags)
  var words = unsafe arguments.map { unsafe strdup($0) } + [nil]
  var variables = unsafe (environment ?? []).map { unsafe strdup($0) } + [nil]
  defer { unsafe (words + variables).forEach { unsafe free($0) } }
  var process = pid_t()
  // SAFETY: all strings live until the call returns.
  let error =
    environment == nil
    ? unsafe posix_spawnp(&process, path, &actions, &attributes, &words, environ)
    : unsafe posix_spawnp(&process, path, &actions, &attributes, &words, &variables)
  guard error == 0 else { throw SpawnFailure(program: path, errno: error) }
  return process
}

/// A descriptor of a program that is started.
package enum SpawnStream {
  /// A descriptor of this process, and what it is to be in the new one.
  case descriptor(Int32, as: Int32)
  /// /dev/null.
  case nothing(as: Int32)

  fileprivate func add(to actions: inout posix_spawn_file_actions_t) {
    switch self {
    case .descriptor(let own, let its): unsafe posix_spawn_file_actions_adddup2(&actions, own, its)
    case .nothing(let its): unsafe posix_spawn_file_actions_addopen(&actions, its, "/dev/null", O_RDWR, 0)
    }
  }
}

/// The group of a program that is started: what the signals of a terminal reach.
package enum SpawnGroup: Int16, Sendable {
  case ours = 0
  /// POSIX_SPAWN_SETPGROUP of spawn.h.
  case own = 0x02
  /// POSIX_SPAWN_SETSID of spawn.h: also a session of its own, which a closed terminal does not end.
  case ownSession = 0x80
}

/// waitpid(2), again where a signal interrupts it: the exit status of a child that has ended, whose number is free then; 128
/// and more: a signal ended it.
@discardableResult
package func waitForChild(_ process: Int32) -> Int32 {
  var status: Int32 = 0
  while unsafe waitpid(process, &status, 0) == -1, errno == EINTR {}
  return status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
}

/// A program that could not be started: errno(3).
package struct SpawnFailure: Error {
  package let program: String
  package let errno: Int32

  /// The cause of the end, for a message that names the program.
  package var reason: String { "it can't be started: \(systemMessage(errno))" }
}

/// The variables of this process, as `NAME=value`.
package var inheritedEnvironment: [String] {
  var variables: [String] = []
  var next = unsafe environ
  while let variable = unsafe next.pointee {
    variables.append(unsafe String(cString: variable))
    unsafe next += 1
  }
  return variables
}

/// A variable of this process that is not empty.
package func environment(_ name: String) -> String? {
  Environment.value(name).flatMap { $0.isEmpty ? nil : $0 }
}
