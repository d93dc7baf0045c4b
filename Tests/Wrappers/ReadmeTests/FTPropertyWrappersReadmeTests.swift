import FTPropertyWrappers
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
      // The store enforces it: no prompt is available here.
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

  /// The declarations of the README's last examples; each access is a wrapper's own.
  private struct Declarations {
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
    @InternetPassword(
      server: "my.server",
      account: "my.account",
      domain: "my.domain",
      aProtocol: kSecAttrProtocolFTP,
      authenticationType: kSecAttrAuthenticationTypeHTMLForm,
      port: 8080,
      path: "/a/b/c"
    ) var declC: String?

    func deleteC() throws { try _declC.deleteKeychain() }
  }

  /// The output in the README.
  private func printed(_ value: String?) -> String { "\(String(describing: value))" }

  @Test func identityOfOneRecord() {
    alone {
      let all = Declarations()
      all.declA = "The Valley Wind"
      #expect(printed(all.declB) == "Optional(\"The Valley Wind\")")
    }
  }

  @Test func identitySwapped() {
    alone {
      let all = Declarations()
      all.declB = "The Valley Wind"
      #expect(printed(all.declA) == "nil")
      #expect(printed(all.declB) == "Optional(\"The Valley Wind\")")
    }
  }

  @Test func identityOfTwoRecords() throws {
    try alone {
      let all = Declarations()
      all.declC = "The Sixth Station"
      all.declA = "The Valley Wind"
      #expect(printed(all.declB) == "Optional(\"The Sixth Station\")")
      try all.deleteC()
      #expect(printed(all.declB) == "Optional(\"The Valley Wind\")")
      // Of what is left it is the oldest again, and it never took over what it read.
      #expect(printed(all.declA) == "Optional(\"The Valley Wind\")" && printed(all.declC) == "nil")
    }
  }

  /// "Data that is in the keychain as UTF-16 or JSON."
  @Test func codingOfOnesOwn() throws {
    try alone {
      @GenericPassword(service: "my.service") var myData: Data?
      myData = try JSONEncoder().encode(["name": "Peter Parker"])
      let data = try #require(myData)
      #expect(try JSONDecoder().decode([String: String].self, from: data) == ["name": "Peter Parker"])
      let utf16 = try #require("Peter Parker".data(using: .utf16))
      myData = utf16
      #expect(myData.flatMap { String(data: $0, encoding: .utf16) } == "Peter Parker")
    }
  }

  /// "Define new access control modifiers before each write."
  @Test func accessControlBeforeAWrite() throws {
    try alone {
      @GenericPassword(service: "my.service", refreshPolicy: .manual) var secret: String?
      secret = "x"
      try _secret.modifyAccess(using: kSecAttrAccessibleAfterFirstUnlock, flags: [.userPresence])
      try _secret.saveToKeychain()
      @GenericPassword(service: "my.service", refreshPolicy: .manual) var same: String?
      #expect(throws: KeychainError.self) { try _same.loadFromKeychain() }
      #expect(same == nil)
      #expect($same.error == nil)
      try _same.deleteKeychain()
      // Every flag that Apple has can be set.
      for flags in [
        SecAccessControlCreateFlags.userPresence, .biometryAny, .biometryCurrentSet, .devicePasscode,
        [.biometryCurrentSet, .or, .devicePasscode], [.biometryAny, .and, .devicePasscode],
      ] {
        secret = "x"
        try _secret.modifyAccess(using: kSecAttrAccessibleWhenUnlocked, flags: flags)
        try _secret.saveToKeychain()
        #expect(_secret.accessControl?.flags == flags)
        try _secret.deleteKeychain()
      }
      #expect(throws: KeychainError.self) {
        try _secret.modifyAccess(using: kSecAttrAccessControl, flags: [])
      }
      #expect(throws: KeychainError.self) {
        try _secret.modifyAccess(using: kSecAttrAccessibleWhenUnlocked, flags: .init(rawValue: 1 << 2))
      }
    }
  }
}

// Statements in the documentation and the sources of FTPropertyWrappers beside the examples.
extension FTPropertyWrappersReadmeTests {
  @Test func manualTouchesNothing() throws {
    try alone {
      @GenericPassword(service: "my.service", refreshPolicy: .manual, defaultValue: "default")
      var manual: String?
      @GenericPassword(service: "my.service") var stored: String?
      #expect(manual == "default" && !_manual.wrappedValueUnchanged)
      stored = "stored"
      #expect(manual == "default")
      try _manual.loadFromKeychain()
      #expect(manual == "stored" && _manual.wrappedValueUnchanged)
      manual = "new"
      #expect(stored == "stored" && !_manual.wrappedValueUnchanged)
      try _manual.saveToKeychain()
      #expect(stored == "new" && _manual.wrappedValueUnchanged)
      stored = nil
      #expect(manual == "new")
      try _manual.loadFromKeychain()
      #expect(manual == "default" && _manual.wrappedValueUnchanged)
    }
  }

  @Test func theDefaultIsReadAndNeverStored() throws {
    try alone {
      @GenericPassword(service: "my.service", defaultValue: 5) var number: Int?
      #expect(number == 5)
      number? += 1
      #expect(number == 6)
      number = nil
      #expect(number == 5)
      try _number.loadFromKeychain()
      #expect(GenericPassword<Int>(service: "my.service").wrappedValue == nil)
    }
  }

  @Test func everyAttributeIsSavedLoadedAndRemoved() throws {
    try alone {
      let number = 0x7465_7374 as CFNumber
      let one = GenericPassword<String>(service: "my.service", account: "me")
      one.wrappedValue = "x"
      (one.description, one.comment, one.label) = ("d", "c", "l")
      (one.creator, one.type, one.isInvisible) = (number, number, true)
      one.accesible = kSecAttrAccessibleAfterFirstUnlock
      try one.saveToKeychain()

      let other = GenericPassword<String>(service: "my.service")
      try other.loadFromKeychain()
      #expect([other.description, other.comment, other.label] == ["d", "c", "l"])
      #expect(other.creator == number && other.type == number && other.isInvisible == true)
      #expect(other.accesible == kSecAttrAccessibleAfterFirstUnlock)
      #expect(other.creationDate != nil && other.modificationDate != nil)
      // The values that it has read don't matter for its equality.
      #expect(other.account == nil && other.service == "my.service")

      (other.description, other.comment, other.label) = (nil, nil, nil)
      (other.creator, other.type, other.isInvisible, other.accesible) = (nil, nil, nil, nil)
      try other.saveToKeychain()
      try one.loadFromKeychain()
      #expect(one.description == nil && one.comment == nil && one.label == nil)
      #expect(one.creator == nil && one.type == nil && one.isInvisible == nil)
      #expect(one.accesible == kSecAttrAccessibleWhenUnlocked && one.wrappedValue == "x")
    }
  }

  @Test func idiomsOfCoreFoundationCompile() throws {
    try alone {
      let query = [
        kSecAttrAccount as String: "me" as CFString, kSecClass as String: kSecClassGenericPassword,
      ]
      #expect((query as CFDictionary)["acct"] as? String == "me")
      let password = InternetPassword<String>(server: "s", aProtocol: "ssh " as CFString)
      #expect(password.aProtocol == kSecAttrProtocolSSH)
      password.wrappedValue = "x"
      for number in [150.5, -1, 4_294_967_296] as [NSNumber] {
        password.creator = number
        try password.saveToKeychain()
        try password.loadFromKeychain()
        #expect(password.creator == nil, "\(number) is no four-character code")
      }
    }
  }

  @Test func errorsSayWhatToDo() throws {
    #expect(
      KeychainError.osSecure(status: errSecInteractionNotAllowed).localizedDescription.contains("unlock"))
    let password = GenericPassword<String>(service: "my.service")
    do {
      try password.modifyAccess(using: "none such", flags: [])
      Issue.record("there is no such accessibility")
    } catch KeychainError.accessControllError(let status) {
      #expect("\(status)" == "osSucureInvalidParameter")
    }
  }

  @Test func loadingDropsWhatWasNotSaved() throws {
    try alone {
      let one = GenericPassword<String>(service: "my.service")
      one.wrappedValue = "x"
      one.comment = "not saved"
      #expect(one.wrappedValue == "x")
      #expect(one.comment == nil)
      one.comment = "not saved"
      try one.deleteKeychain()
      #expect(one.comment == nil)
    }
  }

  @Test func identity() {
    alone {
      let internet = InternetPassword<Int>(server: "s", account: "a", port: 22)
      #expect(internet.itemClass == kSecClassInternetPassword)
      #expect(internet.primaryKey.count == 7 && internet.primaryKey.contains(kSecAttrPort))
      #expect(internet.server == "s" && internet.port == 22 && internet.path == nil)
      let generic = GenericPassword<Int>(service: "s")
      #expect(generic.itemClass == kSecClassGenericPassword)
      #expect(generic.primaryKey == [kSecAttrAccount, kSecAttrService])
    }
  }

  @Test func classesOfOnesOwn() {
    final class Password: GenericPassword<String>, @unchecked Sendable {}
    final class Login: InternetPassword<String>, @unchecked Sendable {}
    final class Anything: KeychainItemPropertyWrapper<String>, @unchecked Sendable {
      override var itemClass: CFString { kSecClassGenericPassword }
      override var primaryKey: Set<CFString> { [] }
    }
    alone {
      Login(server: "my.server").wrappedValue = "login"
      Password(service: "my.service", account: "me").wrappedValue = "x"
      #expect(Anything(refreshPolicy: .onAccess).wrappedValue == "x")
      #expect(Password(service: "my.service").wrappedValue == "x")
      #expect(Login(server: "my.server").wrappedValue == "login")
    }
  }

  @Test func whatDoesNotReadIsTheDefaultAndStays() {
    alone {
      @GenericPassword(service: "my.service") var text: String?
      text = "no number"
      @GenericPassword(service: "my.service", defaultValue: 7) var number: Int?
      #expect(number == 7)
      #expect($number.error != nil)
      #expect(text == "no number")
      number = 300
      #expect($number.error == nil)
      @GenericPassword(service: "my.service", defaultValue: 1) var small: UInt8?
      #expect(small == 1)
      #expect($small.error != nil)
    }
  }
}
