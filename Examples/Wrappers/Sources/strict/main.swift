// All five libraries in Swift 6 mode with every upcoming feature on.
import FTPropertyWrappers
import Foil
import Foundation
import KeychainStorage
import Observation
public import PropertyKit
import UserDefault

@MainActor final class Settings: NSObject {
  static let shared = Settings()
  @FoilDefaultStorage(key: "strict.count") var count = 0
  @UserDefault("strict.name") var name: String?
}

struct Reader: Sendable {
  private let count = FoilDefaultStorage(wrappedValue: 0, key: "strict.count")
  var text: String { "\(count.wrappedValue)" }
}

struct Person: Codable, Equatable, UserDefaultsSerializable, DefaultsValueConvertible {
  var name: String
}

enum Theme: String, Codable, UserDefaultsSerializable {
  case light, dark
}

extension Defaults: @retroactive PropertyDefaults {
  var language: String {
    get { get(or: "en") }
    set { set(newValue) }
  }
}

@MainActor func run() async {
  let settings = Settings.shared
  settings.count = 1
  settings.name = "x"
  let reader = Reader()
  await Task.detached { print("a task reads", reader.text) }.value

  @FoilDefaultStorageOptional(key: "strict.person") var person: Person?
  @FoilDefaultStorage(key: "strict.theme") var theme = Theme.light
  person = Person(name: "y")
  theme = .dark
  @UserDefault("strict.person") var samePerson: Person?
  print(samePerson?.name ?? "nobody", theme)
  print(Defaults.shared.language)

  @GenericPassword(service: "strict") var secret: String?
  secret = "z"
  @KeychainStorage(provider: Keychain(service: "strict.storage"), key: "number") var number = 1
  number += 1
  print(secret ?? "nil", number)
  secret = nil

  withObservationTracking {
    _ = settings.count
  } onChange: {
    print("the count changes")
  }
  settings.count += 1
}

await run()
