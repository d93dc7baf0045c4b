import Model

extension ServiceItem {
  /// KeePassXC has fields instead: some are always there, empty where they say nothing, and none can be removed.
  /// Its items are known by the field that repeats the end of their path.
  func hasFields(_ id: ItemID) -> Bool {
    attributes[Name.uuid].map { id.rawValue.hasSuffix("/" + $0.string) } ?? false
  }

  /// Without what says nothing, and what is KeePassXC's to say.
  func withoutEmptyFields(_ id: ItemID) -> ServiceItem {
    guard hasFields(id) else { return self }
    let isGeneric =
      self.attributes[Name.server]?.isEmpty ?? true
      || Name.kept.contains { self.attributes[$0]?.isEmpty == false }
    let attributes = attributes.filter { name, value in
      // Of a generic password also an empty part is one. Those of an item that was one, and is an internet password, are left.
      let saysNothing = value.isEmpty && !(Name.kept.contains(name) && isGeneric)
      return !saysNothing && !Name.computed.contains(name)
    }
    return ServiceItem(label: label, attributes: attributes)
  }
}

private enum Name {
  /// KeePassXC keeps these also where they are empty.
  static let kept: Set<ExactString> = ["service", "account", "username"]
  static let server: ExactString = "server"
  static let uuid: ExactString = "Uuid"
  static let computed: Set<ExactString> = [uuid, "Path", "FDO_SECRETS_CONTENT_TYPE"]
}
