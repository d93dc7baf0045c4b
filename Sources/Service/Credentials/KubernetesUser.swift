/// The user `keyhole` of a kubeconfig: an entry of the list `users`, which kubectl moves, and indents in its own way, when it writes the file
/// (`kubectl config`, and tools that make clusters).
struct KubernetesUser {
  private static let name = "- name: keyhole"

  /// The lines as kubectl writes them, without those that say nothing.
  private let lines: [String]
  /// The line in the place of the list where no user is left.
  private let noUsers: String

  /// The text of a change. nil: it is none of a kubeconfig.
  init?(in text: String, noUsers: String = "users: []") {
    let all = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    let start = all.firstIndex(of: "users:").map { $0 + 1 } ?? 0
    guard let entry = Self.entry(in: all, from: start) else { return nil }
    lines = Self.content(of: all[entry])
    self.noUsers = noUsers
  }

  /// The file without the user; all its other bytes stay.
  func removed(from file: [UInt8]) -> (outcome: ConfigurationStep.Outcome, left: [UInt8]) {
    let raw = file.split(separator: 0x0A, omittingEmptySubsequences: false)
    let lines = raw.map { String(decoding: $0, as: UTF8.self) }
    guard let list = lines.firstIndex(where: { $0.trimmingEnd == "users:" }),
      let entry = Self.entry(in: lines, from: list + 1)
    else { return (.missing, file) }
    guard Self.content(of: lines[entry]) == self.lines else { return (.changed, file) }
    var left = raw.map { Array($0) }
    left.removeSubrange(entry)
    if !Self.hasEntry(left[(list + 1)...]) { left[list] = Array(noUsers.utf8) }
    return (.done, Array(left.joined(separator: [0x0A])))
  }

  /// The lines of the entry, without blank ones behind it.
  private static func entry(in lines: [String], from start: Int) -> Range<Int>? {
    let end = lines[start...].firstIndex(where: isAnotherKey) ?? lines.endIndex
    guard let first = lines[start..<end].firstIndex(where: { $0.trimmingEnd.trimmingStart == name }) else {
      return nil
    }
    let indentation = lines[first].indentation
    var next = first + 1
    while next < end, lines[next].isBlank || lines[next].indentation > indentation { next += 1 }
    while lines[next - 1].isBlank { next -= 1 }
    return first..<next
  }

  /// Of the file, behind its `users`.
  private static func isAnotherKey(_ line: String) -> Bool {
    guard let first = line.first, line.trimmingEnd != "users:" else { return false }
    return !" -#\r\t".contains(first)
  }

  private static func hasEntry(_ lines: ArraySlice<[UInt8]>) -> Bool {
    let texts = lines.map { String(decoding: $0, as: UTF8.self) }
    return texts.prefix { !isAnotherKey($0) }.contains { $0.trimmingStart.hasPrefix("-") }
  }

  private static func content(of entry: ArraySlice<String>) -> [String] {
    let indentation = entry.first?.indentation ?? 0
    return entry.map { String($0.trimmingEnd.dropFirst(indentation)) }
      .filter { !["env: null", "installHint: \"\""].contains($0.trimmingStart) }
  }
}

extension String {
  var trimmingEnd: String { String(reversed().drop { $0 == " " || $0 == "\r" }.reversed()) }

  var trimmingStart: Substring { drop { $0 == " " } }

  fileprivate var indentation: Int { prefix { $0 == " " }.count }

  fileprivate var isBlank: Bool { trimmingEnd.isEmpty }
}
