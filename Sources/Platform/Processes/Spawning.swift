import CSystem
import Glibc

/// posix_spawn(3) of a program as a shell would start it: the threads that start programs here have all
/// signals blocked, and a program keeps that.
/// Without `environment` it has ours, byte for byte. `channel` is a descriptor of this process, and what it is to be in the
/// new one.
package func spawn(
  _ path: String, _ arguments: [String], environment: [String]? = nil,
  channel: (own: Int32, its: Int32)? = nil, in group: SpawnGroup = .ours
) -> Result<Int32, SpawnFailure> {
  var actions = unsafe posix_spawn_file_actions_t()
  var attributes = posix_spawnattr_t()
  var signals = sigset_t()
  unsafe posix_spawn_file_actions_init(&actions)
  unsafe posix_spawnattr_init(&attributes)
  defer {
    unsafe posix_spawn_file_actions_destroy(&actions)
    unsafe posix_spawnattr_destroy(&attributes)
  }
  if let channel { unsafe posix_spawn_file_actions_adddup2(&actions, channel.own, channel.its) }
  unsafe sigemptyset(&signals)
  unsafe posix_spawnattr_setsigmask(&attributes, &signals)
  unsafe sigfillset(&signals)
  unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
  // POSIX_SPAWN_SETSIGDEF and POSIX_SPAWN_SETSIGMASK of spawn.h.
  unsafe posix_spawnattr_setflags(&attributes, 0x04 | 0x08 | group.rawValue)
  var words = unsafe arguments.map { unsafe strdup($0) } + [nil]
  var variables = unsafe (environment ?? []).map { unsafe strdup($0) } + [nil]
  defer { unsafe (words + variables).forEach { unsafe free($0) } }
  var process = pid_t()
  // SAFETY: all strings live until the call returns.
  let error =
    environment == nil
    ? unsafe posix_spawn(&process, path, &actions, &attributes, &words, environ)
    : unsafe posix_spawn(&process, path, &actions, &attributes, &words, &variables)
  return error == 0 ? .success(process) : .failure(SpawnFailure(program: path, errno: error))
}

/// The group of a program that is started: what the signals of a terminal reach.
package enum SpawnGroup: Int16, Sendable {
  case ours = 0
  /// POSIX_SPAWN_SETPGROUP of spawn.h.
  case own = 0x02
  /// POSIX_SPAWN_SETSID of spawn.h: also a session of its own, which a closed terminal does not end.
  case ownSession = 0x80
}

/// waitpid(2), again where a signal interrupts it: returns when a child has ended and its number is free.
package func waitForChild(_ process: Int32) {
  var status: Int32 = 0
  while unsafe waitpid(process, &status, 0) == -1, errno == EINTR {}
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
