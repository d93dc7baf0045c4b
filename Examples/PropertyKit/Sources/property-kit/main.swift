// Settings by PropertyKit: a property's name is its key. And watching a property, whatever it is made of.
import Foundation
import Observation
import PropertyKit

extension Defaults: PropertyDefaults {
  var theme: String {
    set { set(newValue) }
    get { get(or: "light") }
  }
}

@Observable
final class Document: NSObject, PropertyWatchable {
  var name = "untitled"
  var title: String { "\(name), \(Defaults.shared.theme)" }
}

let document = Document()
document.watch(\.title, options: [.new, .old]) { document, change in
  print(change.oldValue ?? "", "->", change.newValue ?? "")
}
document.name = "letter"
Defaults.shared.theme = "dark"
print("removed:", document.unwatch(\.title).count)
