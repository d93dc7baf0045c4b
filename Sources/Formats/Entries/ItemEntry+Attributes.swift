import Model

extension ItemEntry {
  /// An item as its attributes name it.
  init(_ itemClass: ItemClass, _ attributes: [Attribute], _ secret: SecretSlice) throws(FormatError) {
    var texts: [String: String] = [:]
    for attribute in attributes {
      guard texts.updateValue(String(decoding: attribute.value, as: UTF8.self), forKey: attribute.name) == nil
      else {
        throw FormatError("an item has the attribute \(attribute.name) twice")
      }
    }
    guard let identity = ItemIdentity(itemClass, texts) else {
      throw FormatError("an item of \(itemClass.rawValue) lacks the attributes that name it")
    }
    let isIdentity = itemClass == .other ? ["user.keyhole.label"] : ItemIdentity.attributeNames
    self.init(identity, attributes.filter { !isIdentity.contains($0.name) }, secret)
  }
}

extension SettingCodec {
  func exported(_ value: SettingValue) throws(FormatError) -> [UInt8] {
    do throws(StoreError) { return try content(of: value) } catch { throw FormatError(error.message) }
  }
}
