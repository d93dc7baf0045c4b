// A program that uses the wrappers, for tests that need another process.
//
//   WrapperProgram set SUITE KEY VALUE       sets a string
//   WrapperProgram number SUITE KEY N        sets an integer
//   WrapperProgram count SUITE KEY N         sets an integer to 1, 2, … N
//   WrapperProgram remove SUITE KEY          removes a key
//   WrapperProgram secret SERVICE VALUE      sets a secret; an empty value deletes it
//   WrapperProgram guard SERVICE FLAGS VALUE sets a secret with access flags, their number; prints what fails
//   WrapperProgram get SERVICE               prints a secret
//   WrapperProgram reveal SERVICE LAST       prints every value of a secret from now on, until it is LAST
//   WrapperProgram follow SUITE KEY LAST     prints every value of a string from now on, until it is LAST
//   WrapperProgram answer SUITE N            sets `answer` to each value of `question`, until that is N
import FTPropertyWrappers
import Foil
import Glibc
import UserDefault

let arguments = CommandLine.arguments.dropFirst() + ["", "", "", ""]
let (verb, place, key, value) = (arguments[1], arguments[2], arguments[3], arguments[4])

switch verb {
case "set": FoilDefaultStorageOptional<String>(key: key, userDefaults: Suite(place)).wrappedValue = value
case "remove": FoilDefaultStorageOptional<String>(key: key, userDefaults: Suite(place)).wrappedValue = nil
case "number": UserDefault(wrappedValue: 0, key, defaults: Suite(place)).wrappedValue = Int(value) ?? 0
case "count":
  let number = UserDefault(wrappedValue: 0, key, defaults: Suite(place))
  for next in 1...(Int(value) ?? 1) { number.wrappedValue = next }
case "answer":
  let question = UserDefault(wrappedValue: 0, "question", defaults: Suite(place))
  let answer = UserDefault(wrappedValue: 0, "answer", defaults: Suite(place))
  for await next in question.projectedValue.values {
    answer.wrappedValue = next
    if next == Int(key) { break }
  }
case "secret": GenericPassword<String>(service: place).wrappedValue = key.isEmpty ? nil : key
case "guard":
  let password = GenericPassword<String>(
    service: place, refreshPolicy: .manual, accessOption: kSecAttrAccessibleWhenUnlocked,
    accessFlags: SecAccessControlCreateFlags(rawValue: UInt(key) ?? 0))
  password.wrappedValue = value
  do { try password.saveToKeychain() } catch { print(error) }
case "get": print(GenericPassword<String>(service: place).wrappedValue ?? "nil")
case "follow":
  let text = FoilDefaultStorageOptional<String>(key: key, userDefaults: Suite(place))
  for await next in text.projectedValue.values {
    print(next ?? "nil")
    fflush(nil)
    if next == value { break }
  }
case "reveal":
  let password = GenericPassword<String>(service: place)
  for await next in password.projectedValue.values {
    print(next ?? "nil")
    fflush(nil)
    if next == key { break }
  }
default: exit(2)
}
