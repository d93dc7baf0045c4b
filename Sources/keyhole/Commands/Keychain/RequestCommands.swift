import ArgumentParser
import Control
import KeychainSelection
import Model
import Prompting
import Service
import Store

struct RequestsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "requests", abstract: "List the programs that wait for your approval.",
    discussion: """
      A program that opens a guarded secret, or one of a locked vault (`unlock`), where there is neither a window nor a terminal
      to ask in waits for `keyhole approve NUMBER` or `keyhole deny NUMBER`, as long as a question waits (mount option `auth-timeout`). One line
      each: the number, what it wants to do, the path, the program with its process, and the seconds that are left.
      """)

  @Flag(
    help: "A JSON array of objects: number, operation, paths, program, pid, parents, reason and secondsLeft.")
  var json = false

  func run() throws {
    let places = try StoragePaths.current()
    let requests = try MountRegistration.serving(places).flatMap { try $0.waitingRequests(places) }
    guard json else { return requests.forEach { $0.printLine() } }
    JSONList.print(requests, \.fields)
  }
}

struct ApproveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "approve", abstract: "Approve a request of a program that waits.",
    discussion: """
      It shows the request, and takes a proof that a program does not have, wherever it is typed: the passphrase of the
      vault, or what PAM's service `keyhole` or `keyhole-biometry` asks for. The program gets what the request names, and
      nothing else. Where the vault is locked, the passphrase opens it for all programs, until it is locked again.
      """)

  @Flag(
    help:
      "Also later opens by the same program in the same session, until that ends or the keychain is locked.")
  var session = false

  @Flag(help: "Also all later opens by the same program: writes a rule, as `keyhole allow` does.")
  var always = false

  @Argument(help: "The number of the request.")
  var number: UInt32

  func validate() throws {
    if session, always { throw ValidationError("--session and --always: it is one or the other") }
  }

  func run() throws {
    let places = try StoragePaths.current()
    let scope: ApprovalScope = always ? .always : session ? .session : .once
    let mount = try MountRegistration.waiting(with: number, places)
    try mount.attempt(about: "request \(number)") { () throws(StoreError) in
      try ControlClient.askIdentified(
        mount.process, in: places.runtime, .approve(request: number, scope: scope))
    }
  }
}

struct DenyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "deny", abstract: "Refuse a request of a program that waits.")

  @Argument(help: "The number of the request.")
  var number: UInt32

  func run() throws {
    let places = try StoragePaths.current()
    let mount = try MountRegistration.waiting(with: number, places)
    try mount.attempt(about: "request \(number)") { () throws(StoreError) in
      _ = try ControlClient.ask(mount.process, in: places.runtime, .deny(request: number))
    }
  }
}

extension MountRegistration {
  fileprivate func waitingRequests(_ places: StoragePaths) throws -> [WaitingRequest] {
    let reply = try attempt { () throws(StoreError) in
      do throws(StoreError) {
        return try ControlClient.ask(process, in: places.runtime, .fetchRequests)
      } catch .notFound {
        // It shows no keychain.
        return ControlMessage.requests([])
      }
    }
    guard case .requests(let requests) = reply else { return [] }
    return requests
  }

  /// The mount that a request waits with. - Throws: `Failure` where there is none, or several have the number.
  fileprivate static func waiting(with number: UInt32, _ places: StoragePaths) throws -> MountRegistration {
    let mounts = try serving(places).filter { mount in
      try mount.waitingRequests(places).contains { $0.number == number }
    }
    guard let mount = mounts.first else {
      throw Failure(
        nil, "no request has the number \(number); `keyhole requests` lists those that wait", .notFound)
    }
    guard mounts.count == 1 else {
      let paths = mounts.map(\.path).joined(separator: ", ")
      throw Failure(nil, "several mounts have a request \(number): \(paths); unmount one of them")
    }
    return mount
  }
}

extension WaitingRequest {
  fileprivate func printLine() {
    let starter = parents.first.map { ", started by \($0)" } ?? ""
    // Also in a pipe: a program has chosen its name, and no line of the list may be one's own.
    let columns = [
      "\(number)", purpose.word, paths.joined(separator: ", "), "\(program) (\(process))\(starter)",
      "\(secondsLeft) s",
    ]
    StandardOutput.print(columns.map(\.escapedForTerminal).joined(separator: "\t"))
  }

  /// Of a JSON object.
  fileprivate var fields: [(name: String, value: String)] {
    [
      ("number", "\(number)"), ("operation", purpose.word.quotedAsJSON),
      ("paths", paths.json),
      ("program", program.quotedAsJSON), ("pid", "\(process)"),
      ("parents", parents.json),
      ("reason", reason.quotedAsJSON), ("secondsLeft", "\(secondsLeft)"),
    ]
  }
}
