import BusServer
import Model
import SecretServiceProtocol
import Store

// Which method is called on which object.

extension SecretServiceServer {
  /// The values of the reply; nil: it is sent later.
  func answer(_ call: BusMessage) throws(ProtocolError) -> [BusValue]? {
    guard let object = object(at: call.path) else { return try introspectParent(call) }
    let interface =
      call.interface.isEmpty
      ? Introspection.interface(with: call.member, of: object) ?? "" : call.interface
    guard let signature = Introspection.signature(of: call.member, in: interface) else {
      throw .unknownMethod
    }
    guard call.signature == signature else {
      throw .invalid("\(call.member) takes `\(signature)`, not `\(call.signature)`")
    }
    try requireExistence(of: object, call)
    switch interface {
    case "org.freedesktop.DBus.Introspectable": return try introspect(object, call)
    case "org.freedesktop.DBus.Properties": return try answerProperties(call, object)
    default: break
    }
    guard interface == object.interface else { throw .unknownInterface }
    switch object {
    case .service: return try answerService(call)
    case .collection(let collection): return try answerCollection(call, collection)
    case .item(let collection, let name): return try answerItem(call, collection, name)
    case .session(let number): return try closeSession(number, call)
    case .prompt(let number): return try answerPrompt(call, number)
    }
  }

  private func requireExistence(of object: ServiceObject, _ call: BusMessage) throws(ProtocolError) {
    switch object {
    case .service: return
    case .collection(let collection): guard exists(collection) else { throw .noObject }
    case .item(.session, let name): guard memory[name] != nil else { throw .noObject }
    case .item(let collection, let name): _ = try storedItem(name, in: collection)
    case .session(let number): guard sessions[number]?.client == call.sender else { throw .noSession }
    case .prompt(let number): guard prompts[number]?.client == call.sender else { throw .noObject }
    }
  }

  private func introspectParent(_ call: BusMessage) throws(ProtocolError) -> [BusValue] {
    let children: [String: [String]] = [
      "/": ["org"], "/org": ["freedesktop"], "/org/freedesktop": ["secrets"],
      ServiceObject.root + "/collection": collections.map(\.name),
      ServiceObject.root + "/aliases": aliases.keys.sorted(),
    ]
    guard let names = children[call.path], call.member == "Introspect", call.signature.isEmpty else {
      // Clients of the API know this error.
      throw call.path.hasPrefix(ServiceObject.root + "/") ? .noObject : .unknownObject
    }
    return [.string(Introspection.document(of: nil, children: names))]
  }

  private func introspect(_ object: ServiceObject, _ call: BusMessage) throws(ProtocolError) -> [BusValue]? {
    if case .collection(let collection) = object, let contents = try largeContents(of: collection) {
      replyAfterChange(to: call) { (server) async throws(ProtocolError) in
        [
          .string(
            try await server.elsewhere { () throws(StoreError) in
              Self.document(of: object, paths: contents.paths())
            })
        ]
      }
      return nil
    }
    guard case .collection(let collection) = object else {
      let children = object == .service ? ["collection", "aliases"] : []
      return [.string(Introspection.document(of: object, children: children))]
    }
    return [.string(Self.document(of: object, paths: try itemPaths(of: collection)))]
  }

  private nonisolated static func document(of object: ServiceObject, paths: [String]) -> String {
    Introspection.document(
      of: object, children: paths.compactMap { $0.split(separator: "/").last.map(String.init) })
  }

  private func answerService(_ call: BusMessage) throws(ProtocolError) -> [BusValue]? {
    switch call.member {
    case "OpenSession": return try openSession(call)
    case "SearchItems": return try searchService(call)
    case "Unlock": return try unlock(call)
    case "Lock": return try lock(call)
    case "GetSecrets": return try getSecrets(call)
    case "ReadAlias":
      let collection = call.arguments[0].text.flatMap { aliases[$0] }
      return [.path(collection.map { ServiceObject.collection($0).path } ?? "/")]
    case "SetAlias": return try setAlias(call)
    case "CreateCollection": return try createCollection(call)
    default: throw .unknownMethod
    }
  }

  private func answerCollection(
    _ call: BusMessage, _ collection: ServiceObject.Collection
  ) throws(ProtocolError) -> [BusValue]? {
    switch call.member {
    case "SearchItems": return try searchCollection(call, collection)
    case "CreateItem": return try createItem(call, in: collection)
    default: return try deleteCollection(call, collection)
    }
  }

  private func answerItem(
    _ call: BusMessage, _ collection: ServiceObject.Collection, _ name: String
  ) throws(ProtocolError) -> [BusValue]? {
    switch call.member {
    case "GetSecret": return try getSecret(call, collection, name)
    case "SetSecret": return try setSecret(call, collection, name)
    default: return try deleteItem(call, collection, name)
    }
  }
}
