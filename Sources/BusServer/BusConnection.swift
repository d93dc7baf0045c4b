internal import CSystemdBus
import Platform
import SecretMemory

/// A connection to a message bus by sd-bus(3). Used on the thread of its loop only.
///
/// @unchecked: the loop's thread alone uses it.
@safe package final class BusConnection: @unchecked Sendable {
  private let pointer: OpaquePointer
  private let loop: BusLoop
  private let take: (BusMessage) -> Void
  private let lost: () -> Void
  /// Calls that have no reply yet.
  private var calls: [UInt64: Reference] = [:]
  private var lastCall: UInt64 = 0
  private var isLost = false
  private var subscription: OpaquePointer?

  /// A message of sd-bus with one reference.
  @safe private struct Reference {
    let pointer: OpaquePointer
  }

  /// Connects to the bus at `address`, which has to be one of this user's own.
  ///
  /// - Parameters:
  ///   - address: as DBUS_SESSION_BUS_ADDRESS has it.
  ///   - loop: its thread calls this, and all of the following.
  ///   - take: called for each call of a method and each signal.
  ///   - lost: called once, when the bus is gone.
  /// - Throws: `BusFailure` where there is no bus, or it is another user's.
  package init(
    to address: String, on loop: BusLoop, take: @escaping (BusMessage) -> Void, lost: @escaping () -> Void
  ) throws(BusFailure) {
    try BusLibrary.load()
    var made: OpaquePointer?
    guard unsafe sd_bus_new(&made) >= 0, let made = unsafe made else {
      throw BusFailure(reason: "there is no memory for a connection")
    }
    unsafe pointer = unsafe made
    (self.loop, self.take, self.lost) = (loop, take, lost)
    unsafe sd_bus_set_close_on_exit(pointer, 0)
    var result = unsafe sd_bus_set_address(pointer, address)
    if result >= 0 { result = unsafe sd_bus_set_bus_client(pointer, 1) }
    if result >= 0 { result = unsafe sd_bus_start(pointer) }
    // Waits for the bus to let this process in.
    var name: UnsafePointer<CChar>?
    if result >= 0 { result = unsafe sd_bus_get_unique_name(pointer, &name) }
    guard result >= 0 else {
      throw BusFailure(reason: "the session bus can't be reached (\(systemMessage(-result)))")
    }
    try requireOwnBus()
    let context = unsafe Unmanaged.passUnretained(self).toOpaque()
    var slot: OpaquePointer?
    unsafe sd_bus_add_filter(
      pointer, &slot,
      { message, context, _ in
        guard let message = unsafe message, let context = unsafe context else { return 0 }
        return unsafe Unmanaged<BusConnection>.fromOpaque(context).takeUnretainedValue().filter(message)
      }, context)
    loop.serve(self)
  }

  deinit {
    for call in calls.values { unsafe sd_bus_message_unref(call.pointer) }
    unsafe sd_bus_close(pointer)
    unsafe sd_bus_unref(pointer)
  }

  /// Sends what waits, and closes the connection.
  package func close() {
    isLost = true
    loop.serve(nil)
    unsafe sd_bus_flush(pointer)
    unsafe sd_bus_close(pointer)
  }

  /// The name that the bus has given this connection: `:1.5`.
  package var uniqueName: String? {
    var name: UnsafePointer<CChar>?
    guard unsafe sd_bus_get_unique_name(pointer, &name) >= 0, let name = unsafe name else { return nil }
    return unsafe String(cString: name)
  }

  private func requireOwnBus() throws(BusFailure) {
    var (credentials, user): (OpaquePointer?, uid_t) = (nil, 0)
    defer { unsafe sd_bus_creds_unref(credentials) }
    guard unsafe sd_bus_get_owner_creds(pointer, UInt64(SD_BUS_CREDS_EUID), &credentials) >= 0,
      unsafe sd_bus_creds_get_euid(credentials, &user) >= 0, user == User.real
    else { throw BusFailure(reason: "the session bus does not belong to this user") }
  }

  /// 0: sd-bus goes on with the message.
  private func filter(_ message: OpaquePointer) -> Int32 {
    guard let received = unsafe BusMessage(message) else { return 0 }
    guard received.kind == .signal || received.interface != "org.freedesktop.DBus.Peer" else { return 0 }
    // Any of them may hold a secret.
    unsafe sd_bus_message_sensitive(message)
    var taken = received
    if received.kind == .call {
      lastCall += 1
      taken.call = lastCall
      calls[lastCall] = unsafe Reference(pointer: sd_bus_message_ref(message))
    }
    do throws(BusError) {
      taken.arguments = try unsafe BusValue.readAll(message)
    } catch {
      if received.kind == .call { reply(to: taken, .failure(error)) }
      return 1
    }
    take(taken)
    return received.kind == .call ? 1 : 0
  }
}

extension BusConnection: BusLoop.Source {
  var entry: Poll.Entry {
    let events = unsafe sd_bus_get_events(pointer)
    let wanted = Poll.Events(rawValue: Int16(truncatingIfNeeded: events))
    return Poll.Entry(unsafe sd_bus_get_fd(pointer), wanted)
  }

  var deadline: ContinuousClock.Instant? {
    var microseconds = UInt64.max
    guard unsafe sd_bus_get_timeout(pointer, &microseconds) > 0, microseconds != UInt64.max else {
      return nil
    }
    // Only the beginning of a connection has a time limit.
    return microseconds == 0 ? .now : .now + .seconds(1)
  }

  func process() -> Bool {
    guard !isLost else { return false }
    let result = unsafe sd_bus_process(pointer, nil)
    guard result < 0 else { return result > 0 }
    isLost = true
    loop.serve(nil)
    lost()
    return false
  }
}

// MARK: - Sending

extension BusConnection {
  /// Sends the reply to a call. Nothing is sent the second time, nor where the caller wants none.
  package func reply(to call: BusMessage, _ result: Result<[BusValue], BusError>) {
    guard let reference = calls.removeValue(forKey: call.call) else { return }
    defer { unsafe sd_bus_message_unref(reference.pointer) }
    guard !isLost, unsafe sd_bus_message_get_expect_reply(reference.pointer) > 0 else { return }
    switch result {
    case .failure(let error): unsafe send(error, to: reference.pointer)
    case .success(let values):
      var message: OpaquePointer?
      guard unsafe sd_bus_message_new_method_return(reference.pointer, &message) >= 0,
        let message = unsafe message
      else { return }
      defer { unsafe sd_bus_message_unref(message) }
      unsafe sd_bus_message_sensitive(message)
      do throws(BusError) {
        for value in values { try unsafe value.append(to: message) }
        unsafe sd_bus_send(pointer, message, nil)
      } catch {
        unsafe send(error, to: reference.pointer)
      }
    }
  }

  private func send(_ error: BusError, to call: OpaquePointer) {
    var message: OpaquePointer?
    let result = unsafe error.name.withCString { name in
      unsafe error.message.withCString { text in
        var raw = unsafe sd_bus_error(name: name, message: text, _need_free: 0)
        return unsafe sd_bus_message_new_method_error(call, &message, &raw)
      }
    }
    guard result >= 0, let message = unsafe message else { return }
    unsafe sd_bus_send(pointer, message, nil)
    unsafe sd_bus_message_unref(message)
  }

  /// Forgets a call whose caller is gone.
  package func drop(_ call: BusMessage) {
    guard let reference = calls.removeValue(forKey: call.call) else { return }
    unsafe sd_bus_message_unref(reference.pointer)
  }

  /// Sends a signal to everyone who listens, or to one connection.
  package func emit(
    _ path: String, _ interface: String, _ member: String, _ values: [BusValue]
  ) {
    guard !isLost else { return }
    var message: OpaquePointer?
    guard unsafe sd_bus_message_new_signal(pointer, &message, path, interface, member) >= 0,
      let message = unsafe message
    else { return }
    defer { unsafe sd_bus_message_unref(message) }
    do throws(BusError) {
      for value in values { try unsafe value.append(to: message) }
      unsafe sd_bus_send(pointer, message, nil)
    } catch {}
  }

  /// Calls a method of the bus itself; `done` gets the reply on the loop's thread, and what it gets is gone when it returns.
  package func callBus(
    _ method: String, _ values: [BusValue], _ done: @escaping (Result<[BusValue], BusError>) -> Void
  ) {
    let name = "org.freedesktop.DBus"
    var message: OpaquePointer?
    guard !isLost,
      unsafe sd_bus_message_new_method_call(pointer, &message, name, "/org/freedesktop/DBus", name, method)
        >= 0, let message = unsafe message
    else { return done(.failure(.disconnected)) }
    defer { unsafe sd_bus_message_unref(message) }
    let pending = unsafe Unmanaged.passRetained(PendingCall(done))
    do throws(BusError) {
      for value in values { try unsafe value.append(to: message) }
      let result = unsafe sd_bus_call_async(
        pointer, nil, message,
        { message, context, _ in
          guard let message = unsafe message, let context = unsafe context else { return 0 }
          unsafe Unmanaged<PendingCall>.fromOpaque(context).takeRetainedValue().finish(message)
          return 0
        }, pending.toOpaque(), UInt64.max)
      if result < 0 { throw .disconnected }
    } catch {
      unsafe pending.release()
      done(.failure(error))
    }
  }
}

extension BusConnection {
  /// Calls a method of the bus itself, over a connection for this call alone, and waits for the reply, five seconds at most.
  ///
  /// - Returns: the values of the reply.
  /// - Throws: `BusFailure` where there is no bus, or it refuses.
  @discardableResult package static func callOnce(
    _ method: String, _ values: [BusValue] = [], at address: String
  ) throws(BusFailure) -> [BusValue] {
    try BusLibrary.load()
    let name = "org.freedesktop.DBus"
    var (bus, message, reply): (OpaquePointer?, OpaquePointer?, OpaquePointer?) = (nil, nil, nil)
    defer {
      unsafe sd_bus_message_unref(reply)
      unsafe sd_bus_message_unref(message)
      unsafe sd_bus_close(bus)
      unsafe sd_bus_unref(bus)
    }
    var result = unsafe sd_bus_new(&bus)
    if result >= 0 { result = unsafe sd_bus_set_address(bus, address) }
    if result >= 0 { result = unsafe sd_bus_set_bus_client(bus, 1) }
    if result >= 0 { result = unsafe sd_bus_start(bus) }
    if result >= 0 {
      result = unsafe sd_bus_message_new_method_call(
        bus, &message, name, "/org/freedesktop/DBus", name, method)
    }
    guard result >= 0, let message = unsafe message else {
      throw BusFailure(reason: systemMessage(-result))
    }
    do throws(BusError) {
      for value in values { try unsafe value.append(to: message) }
      result = unsafe sd_bus_call(bus, message, 5_000_000, nil, &reply)
      guard result >= 0, let reply = unsafe reply else { throw .disconnected }
      return try unsafe BusValue.readAll(reply)
    } catch {
      throw BusFailure(reason: result < 0 ? systemMessage(-result) : error.message)
    }
  }
}

/// A call of this process that has no reply yet.
private final class PendingCall {
  private let done: (Result<[BusValue], BusError>) -> Void

  init(_ done: @escaping (Result<[BusValue], BusError>) -> Void) {
    self.done = done
  }

  func finish(_ message: OpaquePointer) {
    if let error = unsafe sd_bus_message_get_error(message) {
      let name = unsafe error.pointee.name.map { unsafe String(cString: $0) } ?? ""
      let text = unsafe error.pointee.message.map { unsafe String(cString: $0) } ?? ""
      return done(.failure(BusError(name, text)))
    }
    do throws(BusError) {
      done(.success(try unsafe BusValue.readAll(message)))
    } catch {
      done(.failure(error))
    }
  }
}

extension BusError {
  fileprivate static let disconnected = BusError(
    "org.freedesktop.DBus.Error.Disconnected", "the bus is gone")
}
