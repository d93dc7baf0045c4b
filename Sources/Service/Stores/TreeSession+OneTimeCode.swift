import Model
import OneTimeCodes
package import SecretMemory
package import Store
import Tree

extension TreeSession {
  /// The present one-time code of the item of a path, which may name a file of the item's too.
  ///
  /// - Throws: `Failure` that names the path.
  package func oneTimeCode(at path: TreePath) throws -> OneTimeCode {
    let item = path.item
    let node = try node(at: item)
    guard let stored = try attempt(item, { () throws(StoreError) in try tree.item(of: node) }) else {
      throw Failure(item.string, StoreError.notFound)
    }
    guard stored.otpauth != nil else { throw Failure.noCode(item) }
    let file = item.appending(ItemSecrets.codeName)
    var code: OneTimeCode?
    try attempt(file) { () throws(StoreError) in
      let permit = try tree.permission(toOpen: find(file.components[...]), .read, by: caller)?.fetch()
      code = try tree.oneTimeCode(of: node, permit)
    }
    guard let code = code.take() else { throw Failure(file.string, StoreError.notFound) }
    return code
  }

  /// Stores what a person typed as the `otpauth:` URI of the item of a path.
  ///
  /// - Throws: `Failure` that names the path, also for what no code can be computed from.
  package func setOneTimeKey(_ text: borrowing SecretBytes, at path: TreePath) throws {
    let file = try otpauthFile(of: path)
    let (issuer, account) = try names(of: path.item)
    let uri: SecretBytes
    do throws(StoreError) { uri = try TypedKey.uri(of: text, issuer: issuer, account: account) } catch {
      throw Failure(file.string, "\(error.message); nothing was stored")
    }
    try write(uri.span, to: file)
  }

  /// The file that `setOneTimeKey` writes. - Throws: `Failure` where it can't be written.
  package func otpauthFile(of path: TreePath) throws -> TreePath {
    let file = path.item.appending(ItemSecrets.otpauthName)
    try requireStored(file)
    return file
  }

  private func names(of item: TreePath) throws -> (issuer: String, account: String) {
    let node = try node(at: item)
    let identity = try attempt(item) { () throws(StoreError) in try tree.item(of: node)?.identity }
    switch identity {
    case .generic(let service, let account): return (service.string, account.string)
    case .internet(let internet): return (internet.server.string, internet.account.string)
    case .other(let label): return (label.string, "")
    case nil: throw Failure(item.string, StoreError.notFound)
    }
  }
}

extension TreePath {
  /// The directory of the item that the path is of, or that it names a file of.
  fileprivate var item: TreePath { isItem ? self : parent }
}
