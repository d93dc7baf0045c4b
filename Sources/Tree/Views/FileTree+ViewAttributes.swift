import Model
import Synchronization
import ViewFormats
import Views

/// The attributes of views, by their full names.
private enum ViewAttribute: String, CaseIterable {
  case format = "user.keyhole.format"
  case dialect = "user.keyhole.dialect"
  case new = "user.keyhole.new"
  case stale = "user.keyhole.stale"

  func isOf(_ view: View) -> Bool {
    switch self {
    case .format, .stale: true
    case .dialect: view.format == .env || view.format == .template
    case .new: view.format.isWritable
    }
  }
}

extension FileTree {
  func attributeNames(ofView name: ExactString, in folder: ViewFolder) throws(StoreError) -> [String] {
    guard try viewExists(.file(folder, name)),
      !overlay.withLock({ $0.pending[.view(.file(folder, name))] != nil })
    else { return [] }
    let view = try view(name, in: folder)
    return ViewAttribute.allCases.filter { $0.isOf(view) && (folder == .views || $0 != .stale) }
      .map(\.rawValue)
  }

  func attribute(_ name: String, ofView view: ExactString) throws(StoreError) -> String {
    if name == AttributeName.name { return view.string }
    let view = try self.view(view, in: .views)
    guard let attribute = ViewAttribute(rawValue: name), attribute.isOf(view) else { throw .noSuchAttribute }
    return switch attribute {
    case .format: view.format.rawValue
    case .dialect: view.dialect.rawValue
    case .new: view.newPlace
    case .stale: "\(try requireViews().status(of: view).isStale)"
    }
  }

  func setAttribute(
    _ name: String, _ value: [UInt8], ofView view: ExactString
  ) throws(StoreError) {
    let views = try requireViews()
    let text = ExactString(utf8: value)?.string ?? ""
    guard let stored = try views.view(view) else { return try setAttribute(name, text, ofRemovedView: view) }
    try setAttribute(name, text, of: stored, views)
  }

  /// `mv` from another file system copies attributes before the view is stored again, with those that it had.
  private func setAttribute(
    _ name: String, _ text: String, ofRemovedView view: ExactString
  ) throws(StoreError) {
    guard let removed = try requireViews().removed(view) else { throw .notFound }
    let present: String?
    switch ViewAttribute(rawValue: name) {
    case .dialect?: present = removed.dialect.rawValue
    case .new?: present = removed.newPlace
    case .format?: present = removed.format.rawValue
    case .stale?: return
    case nil: throw .unsupported(reason: "a view has only attributes of Keyhole's")
    }
    guard text == present else {
      throw .notPermitted(reason: "it can be changed once the file is stored")
    }
  }

  private func setAttribute(
    _ name: String, _ text: String, of view: View, _ views: Views
  ) throws(StoreError) {
    switch ViewAttribute(rawValue: name) {
    case .dialect?:
      guard let dialect = EnvDialect(rawValue: text) else {
        let words = EnvDialect.allCases.map(\.rawValue).joined(separator: ", ")
        throw .invalidValue(reason: "a dialect is one of \(words)")
      }
      try views.setDialect(dialect, of: view)
    case .new?: try views.setNewPlace(text, of: view)
    case .format?:
      guard text == view.format.rawValue else {
        throw .notPermitted(reason: "the format is chosen when the view is made")
      }
    // A computed one stays, and that is no error for programs that copy attributes.
    case .stale?: return
    case nil: throw .unsupported(reason: "a view has only attributes of Keyhole's")
    }
  }
}
