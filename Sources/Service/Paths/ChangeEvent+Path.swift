import Model
package import Notifier
import Platform

extension ChangeEvent {
  /// Whether it is about a path, or something below or above it.
  package func concerns(_ wanted: TreePath) -> Bool {
    [path, from ?? path].contains { path in
      zip(TreePath(path).components, wanted.components).allSatisfy { ExactString($0) == ExactString($1) }
    }
  }

  /// The environment of a command that is run for the event: another one's variables with those of this event.
  package func environment(added variables: [String]) -> [String] {
    variables.filter { !$0.hasPrefix("KEYHOLE_") }
      + ["KEYHOLE_KIND=\(kind.rawValue)", "KEYHOLE_PATH=\(path)", "KEYHOLE_FROM=\(from ?? "")"]
  }
}
