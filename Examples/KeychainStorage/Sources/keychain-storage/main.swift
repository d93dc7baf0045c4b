// A secret by KeychainStorage, over Keyhole's keychain; two properties of one key are one value.
import KeychainStorage

struct Session {
  @KeychainStorage(provider: Keychain.standard, key: "token")
  private var token: String? = nil

  var isOpen: Bool { token != nil }
  func open(_ token: String) { self.token = token }
  func close() { token = nil }
}

let (one, other) = (Session(), Session())
print("open:", other.isOpen)
one.open("s3cret")
print("open:", other.isOpen)
one.close()
print("open:", other.isOpen)
