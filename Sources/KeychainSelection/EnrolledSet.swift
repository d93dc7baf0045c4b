import Model
import Platform

/// The fingers that are enrolled for the user at this moment, as fprintd tells.
package enum EnrolledSet {
  /// fprintd is started by the bus when it is asked.
  private static let patience = Duration.seconds(5)
  /// In bytes.
  private static let longestOutput = 64 * 1024

  /// nil: nothing tells, or no finger is enrolled.
  package static func digest() -> String? {
    guard let name = User.name,
      let program = try? Child(["fprintd-list", name], input: .nothing, errors: .discarded)
    else { return nil }
    defer { program.end() }
    let list = program.readOutput(limit: longestOutput, until: .now + patience)
    return list.flatMap { digest(ofList: String(decoding: $0, as: UTF8.self)) }
  }

  /// A digest of what fprintd-list(1) prints: lines such as `Fingerprints for user anna on Mock (press):`, and below
  /// each ` - #0: right-index-finger`. nil: no finger is enrolled.
  static func digest(ofList text: String) -> String? {
    var (device, fingers) = (Substring(), [String]())
    for line in text.split(separator: "\n") {
      if let finger = line.wholeMatch(of: /\s*- #\d+: (.+)/) {
        fingers.append("\(device)\n\(finger.1)")
      } else if line.hasPrefix("Fingerprints for user") {
        device = line
      }
    }
    guard !fingers.isEmpty else { return nil }
    let digest = SHA256Hasher.hash(Array(fingers.sorted().joined(separator: "\n").utf8))
    return digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
