internal import CSecret
import Dispatch
import Model
import Platform
import Store

/// Why a call over D-Bus failed.
enum BusError: Error {
  /// The other side answered with an error of this name: `org.freedesktop.Secret.Error.IsLocked`.
  case refused(name: String, message: String)
  /// No answer in time.
  case timedOut
  /// The bus, or the service, is gone.
  case gone(reason: String)
}

/// When something has to be over.
struct Deadline: Sendable {
  private let instant: ContinuousClock.Instant

  init(milliseconds: Int) {
    instant = .now + .milliseconds(milliseconds)
  }

  /// The remaining time, in milliseconds.
  var rest: Int {
    let parts = (instant - .now).components
    return max(0, Int(parts.seconds) * 1000 + Int(parts.attoseconds / 1_000_000_000_000_000))
  }
}

/// A connection to the session bus. Used on the main loop's thread only.
///
/// @unchecked: GLib's connection may be used by any thread; the rest is immutable.
@safe final class Bus: @unchecked Sendable {
  let pointer: OpaquePointer

  private init(_ pointer: OpaquePointer) {
    unsafe self.pointer = pointer
  }

  deinit {
    // Its socket is closed with the last reference; messages that arrive then are dropped.
    unsafe g_dbus_connection_close(pointer, nil, nil, nil)
    unsafe g_object_unref(UnsafeMutableRawPointer(pointer))
  }
}

extension Bus {
  /// Connects to the bus at `address`, which has to be one of this user's own.
  static func connect(
    to address: String, isolation: isolated (any Actor)? = #isolation, before deadline: Deadline
  ) async throws(BusError) -> Bus {
    let cancellable = Cancellable(after: deadline)
    defer { cancellable.disarm() }
    let made = unsafe await Self.finish { done, data in
      let flags = GDBusConnectionFlags(
        rawValue: G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT.rawValue
          | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION.rawValue)
      unsafe g_dbus_connection_new_for_address(address, flags, nil, cancellable.pointer, done, data)
    } finish: { _, result, error in
      unsafe g_dbus_connection_new_for_address_finish(result, error)
    }
    let bus = unsafe Bus(try made.get().pointer)
    unsafe g_dbus_connection_set_exit_on_close(bus.pointer, 0)
    guard unsafe shim_peer_user(bus.pointer) == Int(User.real) else {
      throw .gone(reason: "the session bus does not belong to this user")
    }
    return bus
  }

  var isClosed: Bool { unsafe g_dbus_connection_is_closed(pointer) != 0 }

  /// Calls a method, and waits for its answer until the deadline.
  func call(
    _ name: String, _ path: String, _ interface: String, _ method: String, _ arguments: [Variant] = [],
    isolation: isolated (any Actor)? = #isolation, before deadline: Deadline?
  ) async throws(BusError) -> Variant {
    let arguments = Variant(tuple: arguments)
    let timeout = deadline.map { Int32(max(1, $0.rest)) } ?? Int32.max
    let answer = unsafe await Self.finish { done, data in
      withExtendedLifetime(arguments) {
        unsafe g_dbus_connection_call(
          pointer, name, path, interface, method, arguments.pointer, nil, G_DBUS_CALL_FLAGS_NONE, timeout,
          nil, done, data)
      }
    } finish: { source, result, error in
      unsafe g_dbus_connection_call_finish(OpaquePointer(source), result, error)
    }
    return unsafe Variant(owned: try answer.get().pointer)
  }

  /// Runs one of GLib's asynchronous calls and gives what its second half returns.
  static func finish(
    isolation: isolated (any Actor)? = #isolation,
    begin: (GAsyncReadyCallback, UnsafeMutableRawPointer) -> Void,
    finish: @escaping Finish
  ) async -> Result<Reference, BusError> {
    await withCheckedContinuation { continuation in
      let call = unsafe Unmanaged.passRetained(AsyncCall(continuation, finish))
      unsafe begin(
        { source, result, data in
          guard let data = unsafe data else { return }
          let call = unsafe Unmanaged<AsyncCall>.fromOpaque(data).takeRetainedValue()
          unsafe call.end(source, result)
        }, call.toOpaque())
    }
  }

  typealias Finish = (
    UnsafeMutablePointer<GObject>?, OpaquePointer?, UnsafeMutablePointer<UnsafeMutablePointer<GError>?>
  ) -> OpaquePointer?
}

extension Bus {
  struct Signal: Sendable {
    let path: String
    let interface: String
    let member: String
    let arguments: Variant
  }

  /// Has `handler` called on the main loop's thread for each signal of `sender`, as long as the bus is there.
  @discardableResult
  func subscribe(
    sender: String, interface: String, member: String? = nil, path: String? = nil,
    firstArgument: String? = nil, _ handler: @escaping @Sendable (Signal) -> Void
  ) -> UInt32 {
    let listener = unsafe Unmanaged.passRetained(Listener(handler))
    return unsafe g_dbus_connection_signal_subscribe(
      pointer, sender, interface, member, path, firstArgument, G_DBUS_SIGNAL_FLAGS_NONE,
      { _, _, path, interface, member, arguments, data in
        guard let data = unsafe data, let path = unsafe path, let interface = unsafe interface,
          let member = unsafe member, let arguments = unsafe arguments
        else { return }
        let signal = unsafe Signal(
          path: String(cString: path), interface: String(cString: interface),
          member: String(cString: member), arguments: Variant(arguments))
        unsafe Unmanaged<Listener>.fromOpaque(data).takeUnretainedValue().handler(signal)
      }, listener.toOpaque(),
      { data in if let data = unsafe data { unsafe Unmanaged<Listener>.fromOpaque(data).release() } })
  }

  func unsubscribe(_ subscription: UInt32) {
    unsafe g_dbus_connection_signal_unsubscribe(pointer, subscription)
  }
}

private final class Listener: Sendable {
  let handler: @Sendable (Bus.Signal) -> Void

  init(_ handler: @escaping @Sendable (Bus.Signal) -> Void) {
    self.handler = handler
  }
}

/// One of GLib's objects or values, with the reference that a call has given.
@safe struct Reference: @unchecked Sendable {
  let pointer: OpaquePointer
}

/// One of GLib's asynchronous calls that is under way.
@safe private final class AsyncCall {
  private let continuation: CheckedContinuation<Result<Reference, BusError>, Never>
  private let finish: Bus.Finish

  init(
    _ continuation: CheckedContinuation<Result<Reference, BusError>, Never>, _ finish: @escaping Bus.Finish
  ) {
    self.continuation = continuation
    unsafe self.finish = finish
  }

  func end(_ source: UnsafeMutablePointer<GObject>?, _ result: OpaquePointer?) {
    var error: UnsafeMutablePointer<GError>?
    if let value = unsafe finish(source, result, &error) {
      unsafe continuation.resume(returning: .success(Reference(pointer: value)))
    } else {
      unsafe continuation.resume(returning: .failure(BusError(error)))
    }
  }
}

extension BusError {
  /// Takes over GLib's error.
  init(_ error: UnsafeMutablePointer<GError>?) {
    guard let error = unsafe error else {
      self = .gone(reason: "no reason was given")
      return
    }
    defer { unsafe g_error_free(error) }
    if let name = unsafe g_dbus_error_get_remote_error(error) {
      defer { unsafe g_free(name) }
      unsafe g_dbus_error_strip_remote_error(error)
      self = Self.remote(unsafe String(cString: name), unsafe String(cString: error.pointee.message))
    } else if unsafe shim_is_io_error(error) != 0,
      unsafe error.pointee.code == G_IO_ERROR_TIMED_OUT.rawValue
        || error.pointee.code == G_IO_ERROR_CANCELLED.rawValue
    {
      self = .timedOut
    } else {
      self = .gone(reason: unsafe String(cString: error.pointee.message))
    }
  }

  /// The error for an error's name, also one of the bus itself where the service can't answer.
  private static func remote(_ name: String, _ message: String) -> BusError {
    switch name {
    case "org.freedesktop.DBus.Error.Timeout", "org.freedesktop.DBus.Error.TimedOut": .timedOut
    case "org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.Disconnected",
      "org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner",
      "org.freedesktop.DBus.Error.NoServer":
      .gone(reason: "no Secret Service is running")
    case let name where name.hasPrefix("org.freedesktop.DBus.Error.Spawn."):
      .gone(reason: "the Secret Service can't be started: \(message)")
    default: .refused(name: name, message: message)
    }
  }
}

/// Ends a call of GLib's that knows no time limit.
@safe final class Cancellable: @unchecked Sendable {
  let pointer: UnsafeMutablePointer<GCancellable>
  private let timer: any DispatchSourceTimer

  init(after deadline: Deadline) {
    unsafe pointer = g_cancellable_new()
    timer = DispatchSource.makeTimerSource(queue: Background.queue)
    timer.schedule(deadline: .now() + .milliseconds(deadline.rest))
    timer.setEventHandler { [weak self] in
      if let self { unsafe g_cancellable_cancel(pointer) }
    }
    timer.activate()
  }

  deinit {
    unsafe g_object_unref(UnsafeMutableRawPointer(pointer))
  }

  func disarm() {
    timer.cancel()
  }
}
