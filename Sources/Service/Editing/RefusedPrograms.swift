import Store
import Synchronization

/// Programs that were kept out of a folder.
final class RefusedPrograms: Sendable {
  private static let limit = 4
  private let programs = Mutex<[String]>([])

  func note(_ caller: Caller) {
    let identity = caller.identity()
    let process = identity.process.map { " (process \($0.number))" } ?? ""
    let program = identity.programName + process
    programs.withLock { programs in
      if programs.count < Self.limit, !programs.contains(program) { programs.append(program) }
    }
  }

  var text: String? {
    programs.withLock { $0.isEmpty ? nil : $0.joined(separator: ", ") }
  }
}
