import Glibc
import Synchronization

/// A mounted Keyhole over stores of its own.
final class MountedKeyhole: Sendable {
  let world: World
  private let options: [String]
  /// A command that runs another one, with other limits or rights.
  private let launcher: [String]
  private let running = Mutex<Program?>(nil)

  init(_ world: World, options: [String], launcher: [String] = []) {
    self.world = world
    // A question that can be asked nowhere would wait for a person who is not there.
    let listing = options.contains { $0.contains("auth-requests=") } ? [] : ["auth-requests=no"]
    self.options = options + listing
    self.launcher = launcher
  }

  var mount: String { world.mount }

  /// A path in the mounted tree.
  static func / (keyhole: MountedKeyhole, path: String) -> String {
    "\(keyhole.mount)/\(path)"
  }

  /// The file system's process.
  var process: pid_t {
    get throws { try program.process }
  }

  var program: Program {
    get throws {
      guard let program = running.withLock({ $0 }) else { throw NotMounted() }
      return program
    }
  }

  struct NotMounted: Error {}

  struct Died: Error, CustomStringConvertible {
    let output: Output
    var description: String { "The file system's process died: \(output)" }
  }

  struct DidNotStart: Error, CustomStringConvertible {
    let output: Output
    var description: String { "keyhole mount ended before it mounted: \(output)" }
  }
}

// MARK: - Mounting

extension MountedKeyhole {
  /// Starts the file system in the foreground and returns when the mount answers.
  func start() throws {
    let program = try Program(
      launcher + [Products.keyhole, "mount", "--foreground", "-o", options.joined(separator: ","), mount],
      environment: world.environment, directory: world.outside, log: world.log)
    running.withLock { $0 = program }
    try MountTable.wait(for: mount, orEndOf: program, until: Deadline(in: .seconds(20)))
    // In the table before its process answers; this waits for the answer.
    // The settings of a cluster are not known until it is unlocked; it may refuse its user, or not answer.
    let refusal = failure { _ = try System.status(self / "defaults") }
    let isOfCluster = options.contains { $0.hasPrefix("store=") }
    let expected: [Errno] = isOfCluster ? [.noKey, .denied, .io] : [.noKey, .denied]
    if let refusal, !expected.contains(refusal) { throw didNotStart(program, refusal) }
  }

  /// The failure of a test whose file system ended unasked.
  func died() -> any Error {
    guard let program = try? program else { return Errno.notConnected }
    let status = (try? program.waitForEnd(until: Deadline(in: .seconds(5)))) ?? -1
    return Died(output: Output(status: status, bytes: [], error: (try? System.text(world.log)) ?? ""))
  }

  private func didNotStart(_ program: Program, _ error: Errno) -> DidNotStart {
    let status = (try? program.waitForEnd(until: Deadline(in: .seconds(5)))) ?? -1
    let text = (try? System.text(world.log)) ?? ""
    return DidNotStart(output: Output(status: status, bytes: [], error: "\(error): \(text)"))
  }

  /// Unmounts as a user does, and waits for the process to end by itself.
  @discardableResult
  func unmount() throws -> Int32 {
    let program = try program
    // The replay of an outside change uses the mount for a moment, and so does a release that the kernel still sends.
    let isDone = try holds { try unmountOnce() || !MountTable.contains(mount) }
    if !isDone { throw Errno(code: EBUSY) }
    let status = try program.waitForEnd(until: Deadline(in: .seconds(20)))
    running.withLock { $0 = nil }
    return status
  }

  private func unmountOnce() throws -> Bool {
    if Privileges.isRoot { return unsafe umount2(mount, 0) == 0 }
    return try world.run(["/usr/bin/env", "fusermount3", "-u", mount]).status == 0
  }

  /// Unmounts and mounts again, on the same stores.
  func remount() throws {
    try unmount()
    try start()
  }

  /// `kill -9` of the file system's process, and a new one on the same stores.
  func crash() throws {
    try kill()
    try start()
  }

  /// Ends the file system's process by a signal and takes the dead mount away; its exit status.
  @discardableResult
  func kill(_ signal: Int32 = SIGKILL) throws -> Int32 {
    let program = try program
    program.signal(signal)
    // A crash's handlers may want to say something first, and the mount is a part of what they find.
    if signal != SIGKILL { _ = try program.waitForEnd(until: Deadline(in: .seconds(20))) }
    detach()
    let status = try program.waitForEnd(until: Deadline(in: .seconds(20)))
    running.withLock { $0 = nil }
    return status
  }

  /// Ends what is still there, whatever state it is in. Called from any thread, also while a test is stuck.
  func cleanUp() {
    let program = running.withLock { $0 }
    program?.kill()
    while MountTable.contains(mount), detach() {}
    _ = try? program?.waitForEnd(until: Deadline(in: .seconds(10)))
  }

  /// Makes every call that waits for the file system fail.
  func abort() {
    running.withLock { $0 }?.kill()
  }

  /// Takes the mount away whatever uses it, and ends every call that waits for an answer.
  @discardableResult
  private func detach() -> Bool {
    if Privileges.isRoot { return unsafe umount2(mount, Int32(MNT_DETACH | MNT_FORCE)) == 0 }
    let output = try? world.run(["/usr/bin/env", "fusermount3", "-u", "-z", mount])
    return output?.status == 0
  }
}

/// Runs `body` on a fresh mount and takes everything away afterwards, also when the test fails or is too slow.
func withKeyhole(
  _ options: String..., environment: [String] = [], launcher: [String] = [],
  body: (MountedKeyhole) throws -> Void
) async throws {
  try await withWorld(environment: environment) { world in
    let keyhole = MountedKeyhole(
      world, options: (options.contains { $0.hasPrefix("keychain=") } ? [] : ["keychain=vault"]) + options,
      launcher: launcher)
    defer { keyhole.cleanUp() }
    try await withTaskCancellationHandler {
      try keyhole.start()
      do {
        try body(keyhole)
      } catch let error as Errno where error == .notConnected {
        throw keyhole.died()
      }
    } onCancel: {
      keyhole.abort()
    }
  }
}

/// Runs `body` with private folders and no mount.
func withWorld(environment: [String] = [], body: (World) async throws -> Void) async throws {
  try await withTaskExecutorPreference(BlockingThreads.shared) {
    let world = try World(environment: environment)
    defer { world.remove() }
    try await body(world)
  }
}
