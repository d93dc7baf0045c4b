import ArgumentParser
import Dispatch
import Model
import Notifier
import Platform
import Prompting
import Service
import Store
import Tree

struct WatchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch", abstract: "Print each change of a setting or a secret, until interrupted.",
    discussion: """
      One line a change: time, kind and path, a tab between them, and for what was moved where it was \
      before. The kinds are created, modified, deleted, moved, attributes, locked, unlocked, and overflow, \
      which says that some were missed. No value is ever printed.

      It needs no mount, and keeps none busy.
      """)

  @Flag(help: "JSON, one object a line, as in MOUNT/.keyhole/events.")
  var json = false

  @Option(
    help: ArgumentHelp(
      "Run a shell command for each change instead; it finds KEYHOLE_KIND, KEYHOLE_PATH and KEYHOLE_FROM.",
      valueName: "command"))
  var exec: String?

  @Argument(
    help: "A path of the tree or of a mount, or a short name, with all below it; without it, everything.",
    completion: .treePath)
  var path = ""

  func run() throws {
    let path = try OpenedPath.position(path) ?? OpenedPath(path, .folders).path
    let places = try StoragePaths.ofMount()
    if path.components.isEmpty || path.components.first == "defaults" { try places.requireOwnSettings() }
    let stores = try Stores(for: path, places)
    TrustNotice(stores.keychain?.engine, places).write()
    let changes = stores.feed.watch()
    let watch = StoreWatch(stores, places)
    // It only looks: lengths of views are kept by the process that serves the vault.
    var options = FileTree.Options()
    options.isReadOnly = true
    let tree = FileTree(settings: stores.settings, keychain: stores.keychain, options: options)
    tree.beginFollowing()
    for problem in watch.problems { StandardError.write("keyhole: \(problem.escapedForTerminal)\n") }
    Task(executorPreference: Background.tasks) { [json, exec] in
      var number = 0
      for await change in changes {
        // A change of an item is one of the views of it.
        let events = ([change] + tree.changesOfViews(after: change)).map(ChangeEvent.init)
        for event in events where event.concerns(path) {
          number += 1
          if let exec {
            event.run(exec)
          } else {
            StandardOutput.write(json ? event.line(number: number, time: .now) : event.text)
          }
        }
      }
    }
    withExtendedLifetime(watch) { dispatchMain() }
  }
}

extension ChangeEvent {
  fileprivate var text: String {
    let paths = [path] + (from.map { [$0] } ?? [])
    let fields = [Timestamp.now.iso8601, kind.rawValue] + paths.map(\.forStandardOutput)
    return fields.joined(separator: "\t") + "\n"
  }

  /// One after the other, so that no two commands meet; meanwhile the kernel keeps the news.
  fileprivate func run(_ command: String) {
    let environment = environment(added: inheritedEnvironment)
    do throws(SpawnFailure) {
      waitForChild(try spawn("/bin/sh", ["/bin/sh", "-c", command], environment: environment))
    } catch {
      StandardError.write("keyhole: /bin/sh: \(systemMessage(error.errno))\n")
    }
  }
}
