// Settings by Foil: a property that is stored, one that may be missing, and a publisher.
import Foil
import Foundation

final class AppSettings: NSObject {
  static let shared = AppSettings()

  @FoilDefaultStorage(key: "flagEnabled")
  var flagEnabled = true

  @FoilDefaultStorage(key: "totalCount")
  var totalCount = 0

  @FoilDefaultStorageOptional(key: "average")
  var average: Double?
}

let settings = AppSettings.shared
var cancellable = Set<AnyCancellable>()
settings.$average
  .sink { print("average:", $0 ?? "none") }
  .store(in: &cancellable)
let observer = settings.observe(\.totalCount, options: [.old, .new]) { _, change in
  print("count:", change.oldValue ?? 0, "->", change.newValue ?? 0)
}

settings.totalCount += 1
settings.average = 0.5
settings.flagEnabled = false
print("in the suite:", Suite.standard.name)
