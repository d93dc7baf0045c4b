import CoreFoundation
import Dispatch
import FTPropertyWrappers
import Foundation
import Testing

// The examples of FTPropertyWrappers' README.

@Suite(.timeLimit(.minutes(1))) struct FTPropertyWrappersReadmeTests {
  /// Each test has a keychain of its own.
  private func alone(_ body: () throws -> Void) rethrows {
    try KeychainLocation.$current.withValue(.memory(), operation: body)
  }

  @available(*, deprecated)
  @Test func serialized() async {
    @Serialized var number: Int = 20
    @Serialized(customQueue: "my.queue.identifier") var otherNumber: Int = 30
    number += 1
    otherNumber += number
    #expect(number == 21 && otherNumber == 51)

    await withCheckedContinuation { continuation in
      _number.didSet = { _ in continuation.resume() }
      _number.asyncAccess { current -> Int in
        var someAggregator = current
        for _ in 0...10 {
          someAggregator += current
        }
        return someAggregator
      }
    }
    _number.didSet = nil
    #expect(number == 21 * 12)
  }

  @available(*, deprecated)
  @Test func serializedInAStruct() {
    struct SerializedTestStruct {
      @Serialized var number: Int
    }
    let value = SerializedTestStruct(number: 15)
    #expect(value.number == 15)
  }

  @Test func genericPassword() {
    alone {
      @GenericPassword(service: "my.service") var myName: String?
      myName = "Peter Parker"
      @GenericPassword(service: "my.service") var otherProperty: String?
      #expect(otherProperty == "Peter Parker")
    }
  }

  @Test func attributes() throws {
    try alone {
      GenericPassword<String>(service: "my.service").wrappedValue = "Peter Parker"
      @GenericPassword(service: "my.service") var myName: String?
      try _myName.loadFromKeychain()
      _myName.comment = "This is name of a secret hero! Do not show it on public!"
      try _myName.saveToKeychain()

      let other = GenericPassword<String>(service: "my.service")
      try other.loadFromKeychain()
      #expect(other.comment == "This is name of a secret hero! Do not show it on public!")
      #expect(other.wrappedValue == "Peter Parker")
      #expect(other.creationDate != nil)
    }
  }

  @Test func deletion() throws {
    try alone {
      @GenericPassword(service: "my.service") var myName: String?
      let other = GenericPassword<String>(service: "my.service")
      other.wrappedValue = "x"
      myName = nil  // Deletes immediately since myName is saved upon access
      #expect(other.wrappedValue == nil)
      other.wrappedValue = "x"
      let manual = GenericPassword<String>(service: "my.service", refreshPolicy: .manual)
      try manual.saveToKeychain()  // Deletes since wrapped property is nil
      #expect(other.wrappedValue == nil)
      other.wrappedValue = "x"
      try _myName.deleteKeychain()  // Explicit delete.
      #expect(other.wrappedValue == nil)
    }
  }

  @Test func accessControl() throws {
    struct Hidden: Codable {
      var text: String
    }
    try alone {
      @GenericPassword(
        service: "app.futured.ftpropertywrappers.example.name",
        account: "example@futred.com",
        refreshPolicy: .manual,
        accessOption: kSecAttrAccessibleWhenUnlocked,
        accessFlags: [.biometryAny, .or, .devicePasscode]
      ) var data: Hidden?
      data = Hidden(text: "x")
      try _data.saveToKeychain()
      #expect(_data.accessControl?.flags == [.biometryAny, .or, .devicePasscode])
      #expect(_data.accessControl?.protection == kSecAttrAccessibleWhenUnlocked)
      // The store enforces it: nobody is here to say yes.
      let other = GenericPassword<Hidden>(service: "app.futured.ftpropertywrappers.example.name")
      #expect(throws: KeychainError.self) { try other.loadFromKeychain() }
    }
  }

  @Test func bareData() {
    alone {
      @GenericPassword(service: "my.service") var myData: Data?
      myData = Data([0xFE, 0xFF, 0, 0x61])
      #expect(myData == Data([0xFE, 0xFF, 0, 0x61]))
    }
  }

  @Test func internetPassword() {
    alone {
      @InternetPassword(
        server: "my.server",
        account: "my.account",
        domain: "my.domain",
        aProtocol: kSecAttrProtocolSSH,
        authenticationType: kSecAttrAuthenticationTypeHTMLForm,
        port: 8080,
        path: "/a/b/c"
      ) var myPassword: String?
      myPassword = "x"
      #expect(myPassword == "x")
    }
  }

  private func full(_ aProtocol: CFString) -> InternetPassword<String> {
    InternetPassword(
      server: "my.server", account: "my.account", domain: "my.domain", aProtocol: aProtocol,
      authenticationType: kSecAttrAuthenticationTypeHTMLForm, port: 8080, path: "/a/b/c")
  }

  @Test func identityOfOneRecord() {
    alone {
      @InternetPassword(
        server: "my.server",
        account: "my.account",
        domain: "my.domain",
        aProtocol: kSecAttrProtocolSSH,
        authenticationType: kSecAttrAuthenticationTypeHTMLForm,
        port: 8080,
        path: "/a/b/c"
      ) var declA: String?
      @InternetPassword(
        server: "my.server",
        account: "my.account"
      ) var declB: String?

      declA = "The Valley Wind"
      #expect(declB == "The Valley Wind")
    }
  }

  @Test func identitySwapped() {
    alone {
      let declA = full(kSecAttrProtocolSSH)
      @InternetPassword(server: "my.server", account: "my.account") var declB: String?
      declB = "The Valley Wind"
      #expect(declA.wrappedValue == nil)
    }
  }

  @Test func identityOfTwoRecords() throws {
    try alone {
      let declA = full(kSecAttrProtocolSSH)
      @InternetPassword(server: "my.server", account: "my.account") var declB: String?
      @InternetPassword(
        server: "my.server",
        account: "my.account",
        domain: "my.domain",
        aProtocol: kSecAttrProtocolFTP,
        authenticationType: kSecAttrAuthenticationTypeHTMLForm,
        port: 8080,
        path: "/a/b/c"
      ) var declC: String?

      declC = "The Sixth Station"
      declA.wrappedValue = "The Valley Wind"
      #expect(declB == "The Sixth Station")
      try _declC.deleteKeychain()
      #expect(declB == "The Valley Wind")
    }
  }
}
