import BusServer
import KeychainSelection
import Model
import Platform
import Store
import Synchronization

/// Keeps org.freedesktop.secrets served beside a mount: it connects again when the session bus was gone.
final class SecretServiceHost: Sendable {
  /// How long it waits before it looks for the bus again, at first and at most.
  private static let (firstPause, longestPause) = (Duration.seconds(1), Duration.seconds(30))

  private struct State {
    var server: SecretServiceServer?
    var isEnded = false
    /// Of the bus that it is connected to.
    var address = ""
    /// Why nothing is served at the moment.
    var problem: String?
    var pause = firstPause
  }

  private let make: @Sendable () throws(BusFailure) -> SecretServiceServer
  private let replaces: Bool
  private let state = Mutex(State())
  private let deadlines = Deadlines()

  /// `replaces`: whether it takes the place of a service that lets itself be replaced.
  init(
    _ keychain: KeychainStore, _ feed: ChangeFeed, _ options: SecretServiceServer.Options, replaces: Bool
  ) {
    make = { () throws(BusFailure) in try SecretServiceServer(keychain, feed, options) }
    self.replaces = replaces
  }

  /// Why nothing is served; nil: it is.
  var problem: String? { state.withLock { $0.problem.map { "the Secret Service is not served: \($0)" } } }

  /// The address of the bus that it serves on; empty: it serves on none.
  var address: String { state.withLock { $0.server == nil || $0.problem != nil ? "" : $0.address } }

  /// Connects, and serves from then on. `onLoss` is called once with the reason why it ends; without it, it tries again when the
  /// bus is back, and waits for the name as long as another program has it.
  func start(onLoss: (@Sendable (String) -> Void)? = nil) throws(BusFailure) {
    do throws(BusFailure) {
      guard let address = SessionBus.address else {
        throw BusFailure(
          reason:
            "there is no session bus: DBUS_SESSION_BUS_ADDRESS is not set, and the runtime folder has no socket `bus`; "
            + "`dbus-run-session -- $SHELL` starts a shell with one"
        )
      }
      let server = try make()
      let lost: @Sendable (String) -> Void = { [weak self] reason in
        guard let self else { return }
        state.withLock { ($0.server, $0.problem) = (nil, reason) }
        if let onLoss { onLoss(reason) } else { tryAgain() }
      }
      let named: @Sendable () -> Void = { [weak self] in self?.state.withLock { $0.problem = nil } }
      let waiting: @Sendable (String) -> Void = { [weak self] reason in
        self?.state.withLock { $0.problem = reason }
      }
      let events = SecretServiceServer.Events(onName: named, onObstacle: waiting, onLoss: lost)
      let started = Promise<Result<String?, BusFailure>>()
      Task(executorPreference: server.loop) { [replaces, waits = onLoss == nil] in
        do throws(BusFailure) {
          started.fulfill(
            .success(try await server.start(at: address, replacing: replaces, waits: waits, events)))
        } catch {
          started.fulfill(.failure(error))
        }
      }
      let obstacle = try started.wait().get()
      let isEnded = state.withLock { state in
        (state.server, state.address, state.pause) = (server, address, Self.firstPause)
        state.problem = obstacle
        return state.isEnded
      }
      if isEnded { end(server) }
    } catch {
      state.withLock { $0.problem = error.reason }
      throw error
    }
  }

  /// Looks for the bus again after a while, as long as there is none.
  func tryAgain() {
    let pause = state.withLock { state -> Duration? in
      guard !state.isEnded else { return nil }
      defer { state.pause = min(state.pause * 2, Self.longestPause) }
      return state.pause
    }
    guard let pause else { return }
    deadlines.run(after: pause) { Background.run { [weak self] in self?.startAgain() } }
  }

  private func startAgain() {
    guard state.withLock({ !$0.isEnded && $0.server == nil }) else { return }
    do throws(BusFailure) { try start() } catch { tryAgain() }
  }

  /// Serves no more.
  func end() {
    let server = state.withLock { state in
      state.isEnded = true
      return state.server.take()
    }
    if let server { end(server) }
  }

  private func end(_ server: SecretServiceServer) {
    let done = Promise<Void>()
    Task(executorPreference: server.loop) {
      await server.end()
      done.fulfill(())
    }
    done.wait()
  }
}

extension KeychainChoice {
  /// - Throws: `Failure` for a keychain that is another program's Secret Service: it can't be served as one.
  static func requireVault(_ name: String?) throws {
    guard name != KeychainChoice.vault.rawValue else { return }
    guard name == KeychainChoice.secretService.rawValue else {
      throw Failure(nil, "no keychain is shown, so there is nothing to serve as the Secret Service")
    }
    throw Failure(
      "Secret Service",
      "the keychain is another program's Secret Service, which serves its items itself; "
        + "`keyhole migrate --from secret-service --to vault` moves them into the vault first")
  }
}
