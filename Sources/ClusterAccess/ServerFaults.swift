/// The faults of versions of etcd that matter to a store: `Documentation/CLUSTER.md`, *Versions of etcd*.
package enum ServerFaults {
  /// Of a version like `3.4.23`, as a clause; nil: none is known, or it is no version.
  package static func reason(of version: String) -> String? {
    let parts = version.split(separator: "-").first?.split(separator: ".").map { Int($0) } ?? []
    guard parts.count == 3, let major = parts[0], let minor = parts[1], let patch = parts[2], major == 3
    else {
      return nil
    }
    var faults: [String] = []
    if (minor == 4 && patch < 42) || (minor == 5 && patch < 28) {
      faults.append("a user may get around the limits of a role (CVE-2026-33343, CVE-2026-33413)")
    }
    if (minor == 4 && patch < 36) || (minor == 5 && patch < 18) {
      faults.append("a watch may lose the event of a removal after a compaction")
    }
    return faults.isEmpty ? nil : faults.joined(separator: ", and ")
  }
}
