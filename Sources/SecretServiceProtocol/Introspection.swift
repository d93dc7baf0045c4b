/// The interfaces of an object as org.freedesktop.DBus.Introspectable tells them, and the arguments of their methods.
package enum Introspection {
  /// A method, with the types of its arguments in and out.
  struct Method {
    let name: String
    let arguments: [(name: String, type: String)]
    let results: [(name: String, type: String)]
  }

  /// An interface of the API.
  struct Interface {
    let name: String
    var methods: [Method] = []
    var signals: [(name: String, arguments: [(name: String, type: String)])] = []
    var properties: [(name: String, type: String, access: String)] = []
  }

  /// The type of a method's arguments; nil: the interface has no such method.
  package static func signature(of method: String, in interface: String) -> String? {
    let all = interfaces + standard
    return all.first { $0.name == interface }?.methods.first { $0.name == method }?.arguments.map(\.type)
      .joined()
  }

  /// The interface that has the method, of those of an object; nil: none has. For a call that names no interface.
  package static func interface(with method: String, of object: ServiceObject) -> String? {
    let own = interfaces.first { $0.name == object.interface }
    return ([own].compactMap { $0 } + standard).first { $0.methods.contains { $0.name == method } }?.name
  }

  /// The document of an object with these child nodes.
  package static func document(of object: ServiceObject?, children: [String]) -> String {
    var lines = [
      "<!DOCTYPE node PUBLIC \"-//freedesktop//DTD D-BUS Object Introspection 1.0//EN\"",
      " \"http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd\">", "<node>",
    ]
    if let object {
      for interface in standard + interfaces.filter({ $0.name == object.interface }) {
        lines += interface.lines
      }
    } else {
      lines += standard[0].lines
    }
    lines += children.map { " <node name=\"\($0)\"/>" }
    return (lines + ["</node>", ""]).joined(separator: "\n")
  }
}

extension ServiceObject {
  /// The interface of the API that the object has.
  package var interface: String {
    switch self {
    case .service: "org.freedesktop.Secret.Service"
    case .collection: "org.freedesktop.Secret.Collection"
    case .item: "org.freedesktop.Secret.Item"
    case .session: "org.freedesktop.Secret.Session"
    case .prompt: "org.freedesktop.Secret.Prompt"
    }
  }
}

extension Introspection.Interface {
  fileprivate var lines: [String] {
    var lines = [" <interface name=\"\(name)\">"]
    for method in methods {
      lines.append("  <method name=\"\(method.name)\">")
      lines += method.arguments.map { "   <arg name=\"\($0.name)\" type=\"\($0.type)\" direction=\"in\"/>" }
      lines += method.results.map { "   <arg name=\"\($0.name)\" type=\"\($0.type)\" direction=\"out\"/>" }
      lines.append("  </method>")
    }
    for signal in signals {
      lines.append("  <signal name=\"\(signal.name)\">")
      lines += signal.arguments.map { "   <arg name=\"\($0.name)\" type=\"\($0.type)\"/>" }
      lines.append("  </signal>")
    }
    lines += properties.map {
      "  <property name=\"\($0.name)\" type=\"\($0.type)\" access=\"\($0.access)\"/>"
    }
    return lines + [" </interface>"]
  }
}

extension Introspection {
  fileprivate static let standard = [
    Interface(
      name: "org.freedesktop.DBus.Introspectable",
      methods: [Method(name: "Introspect", arguments: [], results: [("xml", "s")])]),
    Interface(
      name: "org.freedesktop.DBus.Properties",
      methods: [
        Method(name: "Get", arguments: [("interface", "s"), ("property", "s")], results: [("value", "v")]),
        Method(name: "GetAll", arguments: [("interface", "s")], results: [("properties", "a{sv}")]),
        Method(
          name: "Set", arguments: [("interface", "s"), ("property", "s"), ("value", "v")], results: []),
      ],
      signals: [
        ("PropertiesChanged", [("interface", "s"), ("changed", "a{sv}"), ("invalidated", "as")])
      ]),
  ]

  fileprivate static let interfaces = [service, collection, item, session, prompt]

  private static let secret = "(oayays)"

  private static let service = Interface(
    name: "org.freedesktop.Secret.Service",
    methods: [
      Method(
        name: "OpenSession", arguments: [("algorithm", "s"), ("input", "v")],
        results: [("output", "v"), ("result", "o")]),
      Method(
        name: "CreateCollection", arguments: [("properties", "a{sv}"), ("alias", "s")],
        results: [("collection", "o"), ("prompt", "o")]),
      Method(
        name: "SearchItems", arguments: [("attributes", "a{ss}")],
        results: [("unlocked", "ao"), ("locked", "ao")]),
      Method(
        name: "Unlock", arguments: [("objects", "ao")], results: [("unlocked", "ao"), ("prompt", "o")]),
      Method(name: "Lock", arguments: [("objects", "ao")], results: [("locked", "ao"), ("prompt", "o")]),
      Method(
        name: "GetSecrets", arguments: [("items", "ao"), ("session", "o")],
        results: [("secrets", "a{o\(secret)}")]),
      Method(name: "ReadAlias", arguments: [("name", "s")], results: [("collection", "o")]),
      Method(name: "SetAlias", arguments: [("name", "s"), ("collection", "o")], results: []),
    ],
    signals: ["CollectionCreated", "CollectionDeleted", "CollectionChanged"].map {
      ($0, [("collection", "o")])
    },
    properties: [("Collections", "ao", "read")])

  private static let collection = Interface(
    name: "org.freedesktop.Secret.Collection",
    methods: [
      Method(name: "Delete", arguments: [], results: [("prompt", "o")]),
      Method(name: "SearchItems", arguments: [("attributes", "a{ss}")], results: [("results", "ao")]),
      Method(
        name: "CreateItem", arguments: [("properties", "a{sv}"), ("secret", secret), ("replace", "b")],
        results: [("item", "o"), ("prompt", "o")]),
    ],
    signals: ["ItemCreated", "ItemDeleted", "ItemChanged"].map { ($0, [("item", "o")]) },
    properties: [
      ("Items", "ao", "read"), ("Label", "s", "readwrite"), ("Locked", "b", "read"),
      ("Created", "t", "read"), ("Modified", "t", "read"),
    ])

  private static let item = Interface(
    name: "org.freedesktop.Secret.Item",
    methods: [
      Method(name: "Delete", arguments: [], results: [("prompt", "o")]),
      Method(name: "GetSecret", arguments: [("session", "o")], results: [("secret", secret)]),
      Method(name: "SetSecret", arguments: [("secret", secret)], results: []),
    ],
    properties: [
      ("Locked", "b", "read"), ("Attributes", "a{ss}", "readwrite"), ("Label", "s", "readwrite"),
      ("Type", "s", "readwrite"), ("Created", "t", "read"), ("Modified", "t", "read"),
    ])

  private static let session = Interface(
    name: "org.freedesktop.Secret.Session", methods: [Method(name: "Close", arguments: [], results: [])])

  private static let prompt = Interface(
    name: "org.freedesktop.Secret.Prompt",
    methods: [
      Method(name: "Prompt", arguments: [("window-id", "s")], results: []),
      Method(name: "Dismiss", arguments: [], results: []),
    ],
    signals: [("Completed", [("dismissed", "b"), ("result", "v")])])
}
