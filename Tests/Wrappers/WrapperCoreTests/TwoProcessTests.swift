import DefaultKeychain
import DefaultSuites
import FTPropertyWrappers
import Foil
import KeychainStorage
import Observation
public import PropertyKit
import Synchronization
import Testing
import UserDefault
import WrapperCore

/// Changes by another process reach every wrapper of this one.
@Suite(.timeLimit(.minutes(2))) struct TwoProcessTests {
  @Test func everyKindOfReaderSeesAChange() async {
    let other = OtherProcess()
    let suite = Suite("app", in: .folder(other.suites))
    let foil = FoilDefaultStorage(wrappedValue: "default", key: "text", userDefaults: suite)
    let plain = UserDefault(wrappedValue: "default", "text", defaults: suite)
    let published = Mutex<[String]>([])
    let subscription = foil.projectedValue.sink { value in published.withLock { $0.append(value) } }
    let isStale = Mutex(false)
    withObservationTracking {
      _ = plain.wrappedValue
    } onChange: {
      isStale.withLock { $0 = true }
    }
    var values = plain.projectedValue.values.makeAsyncIterator()
    #expect(await values.next() == "default")

    #expect(other.run("set", "app", "text", "from outside") != nil)
    #expect(await values.next() == "from outside")
    #expect(foil.wrappedValue == "from outside")
    #expect(plain.wrappedValue == "from outside")
    #expect(holds { isStale.withLock { $0 } })
    #expect(holds { published.withLock { $0 } == ["default", "from outside"] })
    #expect(Defaults(suite: suite).text == "from outside")

    #expect(other.run("remove", "app", "text") != nil)
    #expect(await values.next() == "default")
    subscription.cancel()
  }

  @Test func aThousandChangesEndWithTheLast() async {
    let other = OtherProcess()
    let number = UserDefault(wrappedValue: 0, "number", defaults: Suite("app", in: .folder(other.suites)))
    let process = other.begin(["count", "app", "number", "1000"])
    var last = -1
    for await next in number.projectedValue.values {
      #expect(next > last)
      last = next
      if next == 1000 { break }
    }
    #expect(last == 1000)
    #expect(OtherProcess.wait(process) == 0)
  }

  @Test func eachChangeCrossesInOrderBothWays() async {
    let other = OtherProcess()
    let suite = Suite("app", in: .folder(other.suites))
    let question = UserDefault(wrappedValue: 0, "question", defaults: suite)
    var answers = UserDefault(wrappedValue: 0, "answer", defaults: suite).projectedValue.values
      .makeAsyncIterator()
    #expect(await answers.next() == 0)
    let process = other.begin(["answer", "app", "200"])
    for number in 1...200 {
      question.wrappedValue = number
      #expect(await answers.next() == number)
    }
    #expect(OtherProcess.wait(process) == 0)
  }

  @Test func bothProcessesMaySetKeysOfOneSuite() async {
    let other = OtherProcess()
    let suite = Suite("app", in: .folder(other.suites))
    let process = other.begin(["count", "app", "theirs", "200"])
    let ours = FoilDefaultStorage(wrappedValue: 0, key: "ours", userDefaults: suite)
    for next in 1...200 { ours.wrappedValue = next }
    #expect(OtherProcess.wait(process) == 0)
    let theirs = FoilDefaultStorage(wrappedValue: 0, key: "theirs", userDefaults: suite)
    #expect(holds { ours.wrappedValue == 200 && theirs.wrappedValue == 200 })
  }

  @Test func theOtherProcessHearsOfThisOne() {
    let other = OtherProcess()
    let text = FoilDefaultStorageOptional<String>(
      key: "text", userDefaults: Suite("app", in: .folder(other.suites)))
    text.wrappedValue = "first"
    let process = other.begin(["follow", "app", "text", "last"])
    #expect(holds { other.output == "first\n" })
    text.wrappedValue = "second"
    #expect(holds { other.output == "first\nsecond\n" })
    text.wrappedValue = "last"
    #expect(OtherProcess.wait(process) == 0)
    #expect(other.output == "first\nsecond\nlast\n")
  }

  @Test func secretsOfAnotherProcess() async {
    let other = OtherProcess()
    #expect(other.run("secret", "my.service", "first") != nil)
    let location = KeychainLocation.folder(other.vault)
    // As the program has it: its state lies elsewhere, which costs no more than the times of this device.
    let password = KeychainLocation.$current.withValue(location) {
      GenericPassword<String>(service: "my.service", defaultValue: "default")
    }
    #expect(password.wrappedValue == "first")
    var values = password.projectedValue.values.makeAsyncIterator()
    #expect(await values.next() == "first")
    #expect(other.run("secret", "my.service", "second") != nil)
    #expect(await values.next() == "second")
    #expect(other.run("secret", "my.service", "") != nil)
    #expect(await values.next() == "default")
    #expect(password.wrappedValue == "default")
  }

  @Test func theCommandReachesAWrapper() {
    let other = OtherProcess()
    let number = FoilDefaultStorage(
      wrappedValue: 1, key: "number", userDefaults: Suite("app", in: .folder(other.suites)))
    let process = other.begin(["set", "defaults/app/number", "5"], program: "keyhole")
    #expect(OtherProcess.wait(process) == 0)
    #expect(holds { number.wrappedValue == 5 })
  }
}

extension Defaults: PropertyDefaults {
  var text: String? {
    get { get() }
    set { set(newValue) }
  }
}
