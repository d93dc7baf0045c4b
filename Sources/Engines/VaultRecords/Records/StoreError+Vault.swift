package import Model
import SecretMemory

extension StoreError {
  /// The error that callers of the vault get where no database is asked; what swift-crypto says stays inside.
  package init(vault error: any Error) {
    switch error {
    case let error as StoreError: self = error
    case is SecretMemoryError: self = .outOfMemory
    default: self = .damaged(what: "the vault")
    }
  }
}
