import Model
import SecretMemory
import Store
import Views

// `.keyhole/history/views`: what views were made of.
extension FileTree {
  func versions(ofView name: ExactString) throws(StoreError) -> [ItemVersion] {
    guard let views, views.areSupported else { return [] }
    return try views.versions(of: name)
  }

  func viewPlaces(in history: HistoryPlace) throws(StoreError) -> [Place] {
    guard case .view(let name) = history else {
      return try identitiesWithVersions().compactMap { Views.name(of: $0) }.map { .history(.view($0)) }
    }
    return try versions(ofView: name).map { .history(.viewText(name, $0.number)) }
  }

  func text(ofVersion number: UInt64, ofView name: ExactString) throws(StoreError) -> SecretBytes {
    guard let version = try versions(ofView: name).first(where: { $0.number == number }) else {
      throw .notFound
    }
    return try requireViews().text(of: version)
  }

  /// The size of a version is known while its text can be read.
  func status(ofVersion number: UInt64, ofView name: ExactString) throws(StoreError) -> NodeStatus {
    guard let version = try versions(ofView: name).first(where: { $0.number == number }) else {
      throw .notFound
    }
    let size = (try? requireViews().text(of: version).count) ?? version.item.size
    return NodeStatus(kind: .file, size: size, modified: version.replaced, links: 1)
  }

  func openVersion(
    _ number: UInt64, ofView name: ExactString, _ node: Node, _ mode: OpenMode
  ) throws(StoreError) -> Handle {
    guard !mode.contains(.write) else { throw .accessDenied(reason: "a version can only be read") }
    var state = Handle.State()
    state.draft = .untouched(.secret(try text(ofVersion: number, ofView: name)))
    let handle = Handle(node, in: self, mode: mode, state: state)
    // A lock that came meanwhile may have missed the handle.
    guard isUnlocked(.viewText(name, number)) else {
      handle.seal()
      throw .locked
    }
    return handle
  }
}
