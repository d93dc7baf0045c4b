import FTPropertyWrappers
import Foil
import Foundation
import KeychainStorage
import Observation
public import PropertyKit
import Synchronization
import Testing
import UserDefault

/// Changes by another process, on every interface, reach every kind of reader in this one, in order.
@Suite(.timeLimit(.minutes(2))) struct WrapperNewsTests {
  /// A writer in a process of its own: writes the given number, or all from 1 up to it.
  enum Road: CaseIterable {
    case wrapper, echo, command

    func set(_ number: Int, _ keyhole: MountedKeyhole) throws {
      switch self {
      case .wrapper: try keyhole.world.check("WrapperProgram number s n \(number)")
      case .echo: try keyhole.check("echo \(number) > defaults/s/n")
      case .command: try keyhole.world.check("keyhole set defaults/s/n \(number)")
      }
    }

    func count(to last: Int, _ keyhole: MountedKeyhole) throws {
      let each = "for n in $(seq \(last)); do"
      switch self {
      case .wrapper: try keyhole.world.check("WrapperProgram count s n \(last)", within: .seconds(60))
      case .echo: try keyhole.check("\(each) echo $n > defaults/s/n; done", within: .seconds(60))
      case .command:
        try keyhole.world.check("\(each) keyhole set defaults/s/n $n; done", within: .seconds(60))
      }
    }

    func setSecret(_ number: Int, _ keyhole: MountedKeyhole) throws {
      let item = "keychain/generic/svc/%"
      switch self {
      case .wrapper: try keyhole.world.check("WrapperProgram secret svc \(number)")
      case .echo: try keyhole.check("mkdir -p \(item); echo \(number) > \(item)/value")
      case .command: try keyhole.world.check("echo \(number) | keyhole set \(item)/value")
      }
    }
  }

  @Test(arguments: Road.allCases) func eachNumberReachesEveryKindOfReader(_ road: Road) async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir defaults/s; echo 0 > defaults/s/n")
      let readers = Readers(Suite("s", in: .folder(keyhole.world.config)))
      defer { readers.end() }
      #expect(holds { readers.allHave(0) })
      for number in 1...12 {
        try road.set(number, keyhole)
        #expect(holds { readers.allHave(number) })
      }
      for (name, heard) in readers.heard { #expect(heard == Array(0...12), "\(name)") }
    }
  }

  @Test(arguments: Road.allCases) func ofAThousandChangesTheLastReachesEveryKindOfReader(
    _ road: Road
  ) async throws {
    // Each is a process of its own there.
    let last = road == .command ? 100 : 1000
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir defaults/s; echo 0 > defaults/s/n")
      let readers = Readers(Suite("s", in: .folder(keyhole.world.config)))
      defer { readers.end() }
      #expect(holds { readers.allHave(0) })
      try road.count(to: last, keyhole)
      #expect(holds { readers.allHave(last) })
      for (name, heard) in readers.heard {
        #expect(zip(heard, heard.dropFirst()).allSatisfy { $0 < $1 } && heard.last == last, "\(name)")
      }
    }
  }

  @Test(arguments: Road.allCases) func eachSecretReachesEveryKindOfReader(_ road: Road) async throws {
    try await withKeyhole("keychain=vault") { keyhole in
      let location = KeychainLocation.folder(keyhole.world.data + "/keyhole")
      try road.setSecret(0, keyhole)
      let readers = SecretReaders(location)
      defer { readers.end() }
      #expect(holds { readers.allHave(0) })
      for number in 1...6 {
        try road.setSecret(number, keyhole)
        #expect(holds { readers.allHave(number) })
      }
      for (name, heard) in readers.heard { #expect(heard == Array(0...6), "\(name)") }
    }
  }
}

/// The values that each of several readers got, in order.
private final class Notes: Sendable {
  private let heard = Mutex<[String: [Int]]>([:])

  var all: [String: [Int]] { heard.withLock { $0 } }

  func note(_ number: Int, _ reader: String) { heard.withLock { $0[reader, default: []].append(number) } }

  func allHave(_ number: Int, of count: Int) -> Bool {
    heard.withLock { heard in heard.count == count && heard.values.allSatisfy { $0.last == number } }
  }

  /// Notes what is read under Observation, now and after each change.
  func observe(_ reader: String, _ read: @escaping @Sendable () -> Int) {
    let number = withObservationTracking(read) { [weak self] in self?.observe(reader, read) }
    heard.withLock { heard in
      // A reader that is notified of one change while another is made reads the same twice.
      if heard[reader]?.last != number { heard[reader, default: []].append(number) }
    }
  }
}

/// Every way to read a number of a suite, and to be notified of its changes.
private final class Readers {
  private let notes = Notes()
  private let foil: FoilDefaultStorage<Int>
  private let user: UserDefault<Int>
  private let defaults: Defaults
  private let subscriptions: [AnyCancellable]
  private let tasks: [Task<Void, Never>]
  private let observation: NSKeyValueObservation

  private final class Owner: NSObject, Sendable {
    let foil: FoilDefaultStorage<Int>
    var number: Int { foil.wrappedValue }
    init(_ foil: FoilDefaultStorage<Int>) { self.foil = foil }
  }
  private let owner: Owner

  init(_ suite: Suite) {
    foil = FoilDefaultStorage(wrappedValue: -1, key: "n", userDefaults: suite)
    user = UserDefault(wrappedValue: -1, "n", defaults: suite)
    defaults = Defaults(suite: suite)
    owner = Owner(foil)
    let (notes, foil, user, defaults) = (notes, foil, user, defaults)
    subscriptions = [
      foil.projectedValue.sink { notes.note($0, "publisher") },
      owner.publisher(for: \.number).sink { notes.note($0, "publisher of a key path") },
    ]
    tasks = [
      Task { for await number in user.projectedValue.values { notes.note(number, "sequence, UserDefault") } },
      Task { for await number in foil.projectedValue.values { notes.note(number, "sequence, Foil") } },
      Task {
        for await number in defaults.values(of: "n", as: Int.self) {
          notes.note(number ?? -1, "sequence, PropertyKit")
        }
      },
    ]
    observation = owner.observe(\.number, options: [.initial, .new]) { _, change in
      notes.note(change.newValue ?? -1, "key path")
    }
    notes.observe("Observation, Foil") { foil.wrappedValue }
    notes.observe("Observation, UserDefault") { user.wrappedValue }
    notes.observe("Observation, PropertyKit") { defaults.get(key: "n") ?? -1 }
  }

  var heard: [String: [Int]] { notes.all }

  func allHave(_ number: Int) -> Bool {
    foil.wrappedValue == number && user.wrappedValue == number && defaults.get(key: "n") == number
      && notes.allHave(number, of: 9)
  }

  func end() {
    for subscription in subscriptions { subscription.cancel() }
    observation.invalidate()
    for task in tasks { task.cancel() }
  }
}

/// Every way to read a secret that is a number in text, and to be notified of its changes.
private final class SecretReaders: Sendable {
  private let notes = Notes()
  private let password: GenericPassword<Int>
  private let entry: KeychainStorage<Int, Keychain>
  private let tasks: [Task<Void, Never>]

  init(_ location: KeychainLocation) {
    password = KeychainLocation.$current.withValue(location) { GenericPassword(service: "svc") }
    entry = KeychainStorage(
      wrappedValue: -1, provider: Keychain(service: "svc", in: location), key: "")
    let (notes, password, entry) = (notes, password, entry)
    tasks = [
      Task {
        for await number in password.projectedValue.values {
          notes.note(number ?? -1, "sequence, FTPropertyWrappers")
        }
      },
      Task {
        for await number in entry.projectedValue.values { notes.note(number, "sequence, KeychainStorage") }
      },
    ]
    notes.observe("Observation, FTPropertyWrappers") { password.wrappedValue ?? -1 }
    notes.observe("Observation, KeychainStorage") { entry.wrappedValue }
  }

  var heard: [String: [Int]] { notes.all }

  func allHave(_ number: Int) -> Bool {
    password.wrappedValue == number && entry.wrappedValue == number && notes.allHave(number, of: 4)
  }

  func end() {
    for task in tasks { task.cancel() }
  }
}

extension Defaults: PropertyDefaults {}
