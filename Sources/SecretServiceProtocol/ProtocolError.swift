/// An error of the Secret Service API, as D-Bus carries it.
package struct ProtocolError: Error, Equatable {
  /// The name of the error.
  package let name: String
  /// The text, for a person. It holds no secret.
  package let message: String

  /// - Parameters:
  ///   - name: the name of the error.
  ///   - message: the text, for a person.
  package init(_ name: String, _ message: String) {
    (self.name, self.message) = (name, message)
  }

  private static let secret = "org.freedesktop.Secret.Error."
  private static let bus = "org.freedesktop.DBus.Error."

  /// The collection or the item is locked.
  package static func isLocked(_ message: String) -> ProtocolError {
    ProtocolError(secret + "IsLocked", message)
  }
  /// The session does not exist, or is another client's.
  package static let noSession = ProtocolError(
    secret + "NoSession", "there is no such session of this connection")
  /// There is no such collection, item, prompt or alias.
  package static let noObject = ProtocolError(secret + "NoSuchObject", "there is no such object")
  /// It is there already.
  package static func exists(_ message: String) -> ProtocolError {
    ProtocolError(secret + "AlreadyExists", message)
  }
  /// The service can't do it.
  package static func notSupported(_ message: String) -> ProtocolError {
    ProtocolError(bus + "NotSupported", message)
  }
  /// An argument has no meaning here.
  package static func invalid(_ message: String) -> ProtocolError {
    ProtocolError(bus + "InvalidArgs", message)
  }
  /// The caller may not do it.
  package static func denied(_ message: String) -> ProtocolError {
    ProtocolError(bus + "AccessDenied", message)
  }
  /// There are too many.
  package static func tooMany(_ message: String) -> ProtocolError {
    ProtocolError(bus + "LimitsExceeded", message)
  }
  /// It failed for another reason.
  package static func failed(_ message: String) -> ProtocolError { ProtocolError(bus + "Failed", message) }
  /// No object has this path.
  package static let unknownObject = ProtocolError(bus + "UnknownObject", "there is no such object")
  /// The object has no such interface.
  package static let unknownInterface = ProtocolError(
    bus + "UnknownInterface", "the object has no such interface")
  /// The interface has no such method.
  package static let unknownMethod = ProtocolError(bus + "UnknownMethod", "the object has no such method")
  /// The interface has no such property.
  package static let unknownProperty = ProtocolError(
    bus + "UnknownProperty", "the object has no such property")
  /// The property can't be set.
  package static let readOnlyProperty = ProtocolError(
    bus + "PropertyReadOnly", "this property can't be set")
}
