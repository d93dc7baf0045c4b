// Secrets by FTPropertyWrappers: a generic password with an attribute, and an internet password.
import FTPropertyWrappers

func run() throws {
  @GenericPassword(service: "my.service") var myName: String?
  myName = "Peter Parker"
  try _myName.loadFromKeychain()
  _myName.comment = "the name of a hero"
  try _myName.saveToKeychain()

  @GenericPassword(service: "my.service") var otherProperty: String?
  print(otherProperty ?? "nil", "-", _otherProperty.comment ?? "no comment")

  @InternetPassword(
    server: "my.server",
    account: "my.account",
    aProtocol: kSecAttrProtocolSSH,
    port: 8080
  ) var myPassword: String?
  myPassword = "The Valley Wind"
  @InternetPassword(server: "my.server") var anyPassword: String?
  print(anyPassword ?? "nil")

  myName = nil
  myPassword = nil
  print(otherProperty ?? "nil", anyPassword ?? "nil")
}

try run()
