internal import CSecret
import Model
import SecretMemory

/// libsecret's session with the service: the key under which secrets cross the bus. Used on the main loop's
/// thread only.
///
/// @unchecked: a reference to one of GLib's objects, which is used by one thread.
@safe final class SecretSession: @unchecked Sendable {
  let path: String
  /// Secrets cross the bus as they are.
  let isPlain: Bool
  private let service: UnsafeMutablePointer<CSecret.SecretService>

  private init(_ service: UnsafeMutablePointer<CSecret.SecretService>) {
    unsafe self.service = service
    path = unsafe secret_service_get_session_dbus_path(service).map { unsafe String(cString: $0) } ?? "/"
    let algorithms = unsafe secret_service_get_session_algorithms(service).map { unsafe String(cString: $0) }
    isPlain = algorithms == nil || algorithms == "plain"
  }

  deinit {
    unsafe g_object_unref(service)
  }

  /// Opens a session; libsecret takes a plain one without a word where the service has no other.
  static func open(
    on bus: Bus, isolation: isolated (any Actor)? = #isolation, before deadline: Deadline
  ) async throws(BusError) -> SecretSession {
    guard let service = unsafe shim_service_new(bus.pointer, ServiceName.bus, Int32(max(1, deadline.rest)))
    else {
      throw .gone(reason: "libsecret gave no session")
    }
    let opened = unsafe await Bus.finish { done, data in
      unsafe secret_service_ensure_session(service, nil, done, data)
    } finish: { _, result, error in
      unsafe secret_service_ensure_session_finish(service, result, error) != 0 ? OpaquePointer(service) : nil
    }
    let session = unsafe SecretSession(service)
    _ = try opened.get()
    return session
  }
}

extension SecretSession {
  /// A secret as it crosses the bus; nil where there is no memory for it.
  func encode(_ secret: borrowing SecretBytes, contentType: String) -> Variant? {
    // libsecret's own copy is in locked memory and wiped with the value.
    let value = unsafe secret.withUnsafeBytes { bytes in
      // SAFETY: the buffer says how long it is, and is copied.
      unsafe secret_value_new(
        bytes.baseAddress?.assumingMemoryBound(to: gchar.self), gssize(bytes.count), contentType)
    }
    guard let value = unsafe value else { return nil }
    defer { unsafe secret_value_unref(UnsafeMutableRawPointer(value)) }
    return unsafe secret_service_encode_dbus_secret(service, value).map { unsafe Variant($0) }
  }

  /// Lends a secret that came over the bus, and wipes it; nil: it is none of this session.
  func decode<Value>(
    _ encoded: Variant, _ body: (Span<UInt8>, _ contentType: String) -> Value
  ) -> Value? {
    guard encoded.has(type: "(oayays)") else { return nil }
    let decoded = unsafe withExtendedLifetime(encoded) {
      unsafe secret_service_decode_dbus_secret(service, encoded.pointer)
    }
    guard let value = unsafe decoded else { return nil }
    defer {
      unsafe secret_value_unref(UnsafeMutableRawPointer(value))
      wipeStack()
    }
    var count = gsize()
    let bytes = unsafe secret_value_get(value, &count)
    let contentType = unsafe secret_value_get_content_type(value).map { unsafe String(cString: $0) } ?? ""
    // SAFETY: the value has as many bytes, and lives until the body has returned.
    let span = unsafe Span<UInt8>(_unsafeBytes: UnsafeRawBufferPointer(start: bytes, count: Int(count)))
    return body(span, contentType)
  }
}

/// The names of the specification: https://specifications.freedesktop.org/secret-service/
enum ServiceName {
  static let bus = "org.freedesktop.secrets"
  /// The second name of Keyhole's own service.
  static let ownBus = "org.keyhole.SecretService"
  static let path = "/org/freedesktop/secrets"
  static let service = "org.freedesktop.Secret.Service"
  static let collection = "org.freedesktop.Secret.Collection"
  static let item = "org.freedesktop.Secret.Item"
  static let prompt = "org.freedesktop.Secret.Prompt"
  static let properties = "org.freedesktop.DBus.Properties"
}
