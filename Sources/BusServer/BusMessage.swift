internal import CSystemdBus

/// A call of a method, or a signal, that has come.
package struct BusMessage: Sendable {
  /// The kinds of messages that are taken.
  package enum Kind: Sendable {
    case call
    case signal
  }

  /// Call or signal.
  package let kind: Kind
  /// The unique name of the connection that sent it; empty: the bus itself did, before it had a name.
  package let sender: String
  /// The object; of a signal the one that emits it.
  package let path: String
  /// Empty: the caller has named none.
  package let interface: String
  /// The method, or the signal.
  package let member: String
  /// The type of the arguments.
  package let signature: String
  /// The values, as the signature says.
  package internal(set) var arguments: [BusValue] = []
  /// A number for the reply.
  var call: UInt64 = 0

  /// A number that no other call of the connection has.
  package var number: UInt64 { call }
}

extension BusMessage {
  /// nil: it is a reply.
  init?(_ message: OpaquePointer) {
    var type: UInt8 = 0
    guard unsafe sd_bus_message_get_type(message, &type) >= 0 else { return nil }
    switch Int(type) {
    case Int(SD_BUS_MESSAGE_METHOD_CALL): kind = .call
    case Int(SD_BUS_MESSAGE_SIGNAL): kind = .signal
    default: return nil
    }
    sender = unsafe Self.text(sd_bus_message_get_sender(message))
    path = unsafe Self.text(sd_bus_message_get_path(message))
    interface = unsafe Self.text(sd_bus_message_get_interface(message))
    member = unsafe Self.text(sd_bus_message_get_member(message))
    signature = unsafe Self.text(sd_bus_message_get_signature(message, 1))
  }

  private static func text(_ start: UnsafePointer<CChar>?) -> String {
    unsafe start.map { unsafe String(cString: $0) } ?? ""
  }
}
