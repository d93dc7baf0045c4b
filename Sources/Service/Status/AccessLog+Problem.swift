import Control
import Platform

extension AccessLog {
  /// For `keyhole status`.
  var problem: String? {
    guard isOn else { return "accesses to secrets are not noted; `keyhole log --on` changes that" }
    return failure == 0 ? nil : "\(path) can't be written: \(systemMessage(failure))"
  }
}
